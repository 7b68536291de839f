"""Repeat a test from a checkpoint alone: same numbers, same predictions."""

import hydra
from omegaconf import DictConfig

from esc50.config import check_script, readable_errors, run_folder


@hydra.main(version_base="1.3", config_path="../conf", config_name="evaluate")
def main(cfg: DictConfig) -> float | None:
    with readable_errors():
        check_script(cfg, "evaluate")
        from esc50 import testing

        return testing.evaluate(str(cfg.checkpoint), run_folder(), root=cfg.data.root, num_shifts=cfg.shifts)


if __name__ == "__main__":
    main()
