"""The checklist of a data set: table in the terminal, checklist.json, a page of pictures, TensorBoard."""

import hydra
from omegaconf import DictConfig

from esc50.config import check, readable_errors, run_folder


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(cfg: DictConfig) -> None:
    with readable_errors():
        check(cfg)
        from esc50.stages import inspection

        inspection.inspect_data(cfg, run_folder(), show=print)


if __name__ == "__main__":
    main()
