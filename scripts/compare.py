"""Two systems on the same clips: difference, interval, McNemar's test, and the classes that gained and lost."""

import hydra
from omegaconf import DictConfig

from esc50.config import places, readable_errors, run_folder


@hydra.main(version_base="1.3", config_path="../conf", config_name="compare")
def main(cfg: DictConfig) -> None:
    with readable_errors():
        a, b = places(cfg, "a"), places(cfg, "b")
        from esc50.stages import tables

        print(tables.compare(a, b, run_folder()))


if __name__ == "__main__":
    main()
