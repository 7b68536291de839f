"""Draw where a trained model looks: a map over the spectrogram of any audio file."""

import sys

import hydra
from omegaconf import DictConfig

from esc50.config import check_script, readable_errors, run_folder


@hydra.main(version_base="1.3", config_path="../conf", config_name="explain")
def main(cfg: DictConfig) -> None:
    with readable_errors():
        check_script(cfg, "explain")
        from esc50.stages import explanation

        names = {key: None if cfg[key] is None else str(cfg[key]) for key in ("class", "layer")}
        problems = explanation.explain(str(cfg.checkpoint), str(cfg.input), run_folder(), class_name=names["class"],
                                       layer=names["layer"], window=cfg.window, hop=cfg.hop, num_rows=cfg.rows)
        for problem in problems:
            sys.stderr.write(f"error: {problem}\n")
        if problems:
            sys.exit(1)


if __name__ == "__main__":
    main()
