"""Label recordings with a trained model, as table, CSV or JSON: `esc50 predict checkpoint=outputs/train/<time> input=dog.wav`.

Of the last two stdout holds nothing but rows.
"""

import sys

from omegaconf import DictConfig

from esc50.commands.entry import command, say
from esc50.config.door import check_command


@command(config="predict")
def main(cfg: DictConfig) -> None:
    check_command(cfg, "predict")
    from esc50.assembly.restore import load
    from esc50.inference.labels import label

    failed = label(
        load(str(cfg.checkpoint)),
        str(cfg.input),
        say,
        format=cfg.format,
        num_top=cfg.top,
        window=cfg.window,
        hop=cfg.hop,
        min_probability=cfg.min_probability,
        max_entropy=cfg.max_entropy,
        batch_size=cfg.batch_size,
    )
    if failed:
        sys.exit(1)
