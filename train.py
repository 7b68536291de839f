"""Train a classifier: prepare the data, fit, test; returns the validation accuracy, so that sweeps can optimise it."""

import hydra
from omegaconf import DictConfig

from esc50.config import check, readable_errors, run_folder, sweep_folder


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(cfg: DictConfig) -> float | None:
    with readable_errors():
        if (sweep := sweep_folder()) is not None:
            from esc50 import sweeping

            return sweeping.train_one(cfg, run_folder(), sweep=sweep)
        check(cfg)
        from esc50 import run

        return run.train(cfg, run_folder())


if __name__ == "__main__":
    main()
