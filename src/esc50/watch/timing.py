"""Does training wait for data? Seconds that a batch takes to come and to be learnt from, and clips learnt from a second."""

import time
from typing import Any, cast

import lightning as L

from esc50.training.task import Classifier
from esc50.watch.evaluation import last_step


class Timing(L.Callback):
    """Writes once an epoch `time/data_seconds` and `time/model_seconds` (of a batch, in the mean), `time/wait_share` (the
    data's part of both) and `time/examples_a_second` (of all processes).

    Data is what lies between the end of a batch and the start of the next, and for the first batch since the epoch began.
    A GPU may still be at work on the batch before; the share is then the most that it can have waited.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._data_seconds = self._model_seconds = 0.0
        self._num_batches = self._num_examples = 0

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._data_seconds = self._model_seconds = 0.0
        self._num_batches = self._num_examples = 0
        # Embeddings of a frozen body are computed before the first batch comes; that is no waiting for data.
        task = cast(Classifier, pl_module)
        embeds = task.body_frozen and task.reuses_embeddings
        self._since = None if embeds else time.perf_counter()

    def on_train_batch_start(self, trainer: L.Trainer, pl_module: L.LightningModule, batch: Any, batch_idx: int) -> None:
        now = time.perf_counter()
        if self._since is not None:
            self._data_seconds += now - self._since
        self._since = now

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        assert self._since is not None
        now = time.perf_counter()
        self._model_seconds += now - self._since
        self._since = now
        self._num_batches += 1
        self._num_examples += len(batch["target"]) * trainer.world_size

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if trainer.logger is not None and self._num_batches:
            trainer.logger.log_metrics(
                summarise(
                    data_seconds=self._data_seconds,
                    model_seconds=self._model_seconds,
                    num_batches=self._num_batches,
                    num_examples=self._num_examples,
                ),
                step=last_step(trainer),
            )


def summarise(*, data_seconds: float, model_seconds: float, num_batches: int, num_examples: int) -> dict[str, float]:
    """Means by tag, from the sums of an epoch."""
    total = data_seconds + model_seconds
    return {
        "time/data_seconds": data_seconds / num_batches,
        "time/model_seconds": model_seconds / num_batches,
        "time/wait_share": data_seconds / total,
        "time/examples_a_second": num_examples / total,
    }
