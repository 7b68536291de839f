"""The TensorBoard events of a run: each curve has one value a step, also where a folder is used again."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import lightning as L
from lightning.pytorch.loggers import TensorBoardLogger
from torch.utils.tensorboard import SummaryWriter

TENSORBOARD = "tensorboard"  # the folder of events within a run's folder


class RunEvents(TensorBoardLogger):
    """TensorBoardLogger without what makes curves run back: Lightning adds `epoch` to whatever is logged, several times a
    step; and what an earlier run left in the folder from `purge_step` on (all of it without a resume) is taken back."""

    def __init__(self, folder: str | Path, *, version: str, purge_step: int = 0):
        super().__init__(folder, name="", version=version, purge_step=purge_step)
        self._step_with_epoch: int | None = None
        self.profile: Callable[[str], AbstractContextManager] = lambda name: nullcontext()

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        if step == self._step_with_epoch:
            metrics = {name: value for name, value in metrics.items() if name != "epoch"}
        elif "epoch" in metrics:
            self._step_with_epoch = step
        with self.profile("logging"):
            super().log_metrics(metrics, step)


def writer_of(trainer: L.Trainer) -> SummaryWriter:
    """What writes the events of a trainer with a logger."""
    assert trainer.logger is not None
    return trainer.logger.experiment  # type: ignore[attr-defined]  # the base class of Lightning's loggers does not have it
