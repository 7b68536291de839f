"""What does training do on a GPU? Seconds of an epoch, and the share of them in which the GPU has nothing to do."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import lightning as L
import torch

from esc50.benchmarks.timing import Measurement

IDLE_GOAL = 0.05  # of an epoch


class GpuTimes(L.Callback):
    """Seconds of every epoch, and of the steps in it by the GPU's own clock, from a batch's arrival to the update."""

    def __init__(self) -> None:
        self.epochs: list[float] = []
        self.busy: list[float] = []
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self._started = 0.0

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        torch.cuda.synchronize()
        self._events, self._started = [], time.perf_counter()

    def on_train_batch_start(self, trainer: L.Trainer, pl_module: L.LightningModule, batch: Any, batch_idx: int) -> None:
        self._events.append((torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)))
        self._events[-1][0].record()

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._events[-1][1].record()

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        torch.cuda.synchronize()
        self.epochs.append(time.perf_counter() - self._started)
        self.busy.append(sum(start.elapsed_time(end) for start, end in self._events) / 1000)


def measure_gpu(fits: Mapping[str, Callable[[GpuTimes], None]]) -> Measurement:
    """`fits` trains each model for some epochs with the callback it is given; the first epoch counts for nothing."""
    rows: list[tuple[str, float, str]] = []
    ratios: dict[str, float] = {}
    goals: dict[str, float] = {}
    raw: dict[str, list[float]] = {}
    for name, fit in fits.items():
        times = GpuTimes()
        fit(times)
        warm = list(zip(times.epochs, times.busy, strict=True))[1:]
        seconds, busy = (sum(values) / len(warm) for values in zip(*warm, strict=True))
        rows += [(f"{name}, an epoch", seconds, "s"), (f"{name}, the GPU waits", 100 * (1 - busy / seconds), "%")]
        ratios[f"gpu_{name}_wait_time"] = 1 - busy / seconds
        goals[f"gpu_{name}_wait_time"] = IDLE_GOAL
        raw |= {f"{name}, epochs": times.epochs, f"{name}, busy": times.busy}
    return Measurement(
        title="Training on the GPU",
        rows=tuple(rows),
        ratios=ratios,
        goals=goals,
        raw=raw,
        note="small networks are done before the loop has prepared the next step; larger batches help",
    )
