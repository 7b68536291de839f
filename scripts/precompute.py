"""Bring the feature store of the chosen data up to date, on all cores."""

import hydra
from omegaconf import DictConfig

from esc50.config import check, readable_errors


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(cfg: DictConfig) -> None:
    with readable_errors():
        check(cfg)
        from esc50.stages import preparation

        preparation.precompute(cfg)


if __name__ == "__main__":
    main()
