"""Write split.csv: which clip trains, validates and tests."""

import hydra
from omegaconf import DictConfig

from esc50.config import check, readable_errors, run_folder


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(cfg: DictConfig) -> None:
    with readable_errors():
        check(cfg)
        from esc50.stages import preparation

        preparation.split(cfg, run_folder())


if __name__ == "__main__":
    main()
