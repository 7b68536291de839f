"""Draw where a trained model looks in recordings: `esc50 explain checkpoint=outputs/train/<time> input=dog.wav`."""

import sys

from omegaconf import DictConfig

from esc50.commands.entry import command
from esc50.config.door import check_command
from esc50.config.names import run_folder
from esc50.errors import require


@command(config="explain")
def main(cfg: DictConfig) -> None:
    check_command(cfg, "explain")
    require("esc50 explain", "captum")
    from esc50.assembly.restore import load
    from esc50.inference.explanations import explain

    names = {key: None if cfg[key] is None else str(cfg[key]) for key in ("class", "layer")}
    problems = explain(
        load(str(cfg.checkpoint)),
        str(cfg.input),
        run_folder(),
        class_name=names["class"],
        layer=names["layer"],
        window=cfg.window,
        hop=cfg.hop,
        num_rows=cfg.rows,
    )
    for problem in problems:
        sys.stderr.write(f"error: {problem}\n")
    if problems:
        sys.exit(1)
