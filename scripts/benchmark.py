"""Measure on this machine what the project claims about speed; leaves benchmark.md and benchmark.json."""

import shlex
import sys

import hydra
from omegaconf import DictConfig

from esc50.config import check, chosen, readable_errors, run_folder


@hydra.main(version_base="1.3", config_path="../conf", config_name="benchmark")
def main(cfg: DictConfig) -> None:
    with readable_errors():
        check(cfg)
        from esc50 import suite

        print(suite.run(cfg, run_folder(), make_cfg=lambda overrides: hydra.compose("config", overrides), data=chosen("data"),
                        command=shlex.join(["python", *sys.argv])))


if __name__ == "__main__":
    main()
