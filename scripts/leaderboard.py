"""One table of what systems score over folds and seeds, among the published results."""

import shlex
import sys

import hydra
from omegaconf import DictConfig

from esc50.config import places, readable_errors, run_folder


@hydra.main(version_base="1.3", config_path="../conf", config_name="leaderboard")
def main(cfg: DictConfig) -> None:
    with readable_errors():
        runs = places(cfg, "runs")
        from esc50.stages import tables

        print(tables.leaderboard(runs, run_folder(), command=shlex.join(["python", *sys.argv])))


if __name__ == "__main__":
    main()
