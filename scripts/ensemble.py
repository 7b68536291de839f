"""Average the probabilities of finished runs, fold by fold."""

import hydra
from omegaconf import DictConfig

from esc50.config import numbers, places, readable_errors, run_folder


@hydra.main(version_base="1.3", config_path="../conf", config_name="ensemble")
def main(cfg: DictConfig) -> None:
    with readable_errors():
        members = places(cfg, "runs")
        weights = numbers(cfg, "weights", count=len(members))
        from esc50.stages import tables

        print(tables.ensemble(members, run_folder(), weights=weights))


if __name__ == "__main__":
    main()
