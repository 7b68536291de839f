"""One progress bar over the whole training, with an estimate of the time left."""

import sys
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import ProgressBar
from tqdm import tqdm

QUIET_SECONDS = 15.0  # between lines where nobody watches a terminal


class RunProgress(ProgressBar):
    """Counts the batches of all epochs; shows epoch, loss and validation accuracy."""

    def __init__(self) -> None:
        super().__init__()
        self._bar: tqdm | None = None
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def enable(self) -> None:
        self._enabled = True

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        assert trainer.max_epochs is not None
        done = trainer.current_epoch * trainer.num_training_batches
        self._bar = tqdm(
            total=trainer.max_epochs * trainer.num_training_batches,
            initial=done,
            unit="batch",
            desc="train",
            disable=not self._enabled,
            dynamic_ncols=True,
            mininterval=0.2 if sys.stderr.isatty() else QUIET_SECONDS,
        )

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        assert self._bar is not None
        self._bar.update()

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        assert self._bar is not None
        shown = {
            name.split("/")[0]: f"{value:.3f}"
            for name, value in self.get_metrics(trainer, pl_module).items()
            if isinstance(value, float)
        }
        self._bar.set_description(f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}", refresh=False)
        self._bar.set_postfix(shown, refresh=False)

    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        assert self._bar is not None
        self._bar.close()

    def on_exception(self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException) -> None:
        if self._bar is not None:
            self._bar.close()
