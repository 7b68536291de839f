"""Label recordings with a trained model: a table, or rows of CSV or JSON and nothing else on stdout."""

import sys

import hydra
from omegaconf import DictConfig

from esc50.config import check_script, readable_errors


@hydra.main(version_base="1.3", config_path="../conf", config_name="predict")
def main(cfg: DictConfig) -> None:
    with readable_errors():
        check_script(cfg, "predict")
        from esc50.stages import prediction

        failed = prediction.predict(
            str(cfg.checkpoint), str(cfg.input), print, format=cfg.format, num_top=cfg.top, window=cfg.window, hop=cfg.hop,
            min_probability=cfg.min_probability, max_entropy=cfg.max_entropy, batch_size=cfg.batch_size)
        if failed:
            sys.exit(1)


if __name__ == "__main__":
    main()
