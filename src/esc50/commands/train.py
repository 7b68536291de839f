"""Train a model, test it and leave the record: `esc50 train model=resnet50 augment=specaugment`.

With `sweep=`, or `-m` and several values, it trains many. Returns the validation accuracy, so that sweeps can optimise it.
"""

from omegaconf import DictConfig

from esc50.commands.entry import command
from esc50.config.door import check
from esc50.config.names import run_folder, sweep_folder


@command(config="config")
def main(cfg: DictConfig) -> float | None:
    if (sweep := sweep_folder()) is not None:
        from esc50.runs.sweep import train_one

        return train_one(cfg, run_folder(), sweep=sweep)
    check(cfg)
    from esc50.runs.train import train

    return train(cfg, run_folder())
