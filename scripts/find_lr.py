"""Learning-rate range test: suggestion in the terminal, curve as PNG and in TensorBoard."""

import hydra
from omegaconf import DictConfig

from esc50.config import check, readable_errors, run_folder


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(cfg: DictConfig) -> None:
    with readable_errors():
        check(cfg)
        from esc50.stages import learning_rate

        learning_rate.find_lr(cfg, run_folder())


if __name__ == "__main__":
    main()
