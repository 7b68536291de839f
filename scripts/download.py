"""Fetch or generate the chosen data set and check it against its table."""

import hydra
from omegaconf import DictConfig

from esc50.config import check, readable_errors


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(cfg: DictConfig) -> None:
    with readable_errors():
        check(cfg)
        from esc50.stages import preparation

        preparation.download(cfg)


if __name__ == "__main__":
    main()
