"""Find a learning rate by a range test, with its curve as PNG and in TensorBoard: `esc50 find-lr data=esc10 model=melcnn`."""

from omegaconf import DictConfig

from esc50.commands.entry import command
from esc50.config.door import check
from esc50.config.names import run_folder


@command(config="config")
def main(cfg: DictConfig) -> None:
    check(cfg)
    from esc50.runs.find_lr import find_lr

    find_lr(cfg, run_folder())
