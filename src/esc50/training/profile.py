"""Where does a training's time go? Seconds of each part, every second counted once, and torch's trace of a few steps."""

import csv
import logging
import time
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.profilers import Profiler

from esc50.files import write_atomically

log = logging.getLogger(__name__)

PARTS = ("data", "transfer", "augmentation", "forward", "backward", "optimizer", "logging", "validation", "checkpoints", "loop")
# What Lightning calls its actions, by a piece of the name; the first that fits. What fits none belongs to the action around it.
PART_OF = {
    "dataloader_next": "data",
    "val_next": "data",
    "batch_to_device": "transfer",
    "augmentation": "augmentation",
    ".training_step": "forward",
    ".on_train_epoch_start": "forward",
    ".backward": "backward",
    ".optimizer_step": "optimizer",
    "save_checkpoint": "checkpoints",
    "Checkpoint": "checkpoints",
    "[Callback]": "logging",
    "logging": "logging",
    "validation_": "validation",
}


class PartsProfiler(Profiler):
    """Divides the time of `fit` among PARTS and writes the table `path`, csv: part, seconds, share, milliseconds a step.

    An action within another one stops the clock of the outer, so the parts add up to the whole; `loop` is what is left.
    GPUs are waited for at every change, so that their work is counted where it was asked for; that costs time itself.
    """

    def __init__(self, path: Path):
        super().__init__()
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.num_steps = 0
        self._path = path
        self._open = ["loop"]
        self._since: float | None = None

    def start(self, action_name: str) -> None:
        self._count()
        self._open.append(next((part for piece, part in PART_OF.items() if piece in action_name), self._open[-1]))
        self.num_steps += action_name.endswith(".training_step") and action_name.startswith("[Strategy]")

    def stop(self, action_name: str) -> None:
        self._count()
        self._open.pop()

    def _count(self) -> None:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        now = time.perf_counter()
        if self._since is not None:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now

    def describe(self) -> None:
        """Write the table and show it; Lightning calls this at the end."""
        total, steps = sum(self.seconds.values()) or 1.0, max(1, self.num_steps)
        rows = [(part, seconds, seconds / total, 1000 * seconds / steps) for part, seconds in self.seconds.items()]
        with write_atomically(self._path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("part", "seconds", "share", "ms_per_step"))
            writer.writerows((part, *(f"{value:.4f}" for value in values)) for part, *values in rows)
        table = "\n".join(
            f"  {part:<12} {seconds:>8.2f} s {share:>7.1%} {each:>9.2f} ms/step"
            for part, seconds, share, each in sorted(rows, key=lambda row: -row[1])
        )
        log.info("where the time of %d steps went (%s):\n%s", self.num_steps, self._path, table)


class StepTrace(L.Callback):
    """Torch's own trace of the third to fifth training step, Python functions included; open `path` at ui.perfetto.dev."""

    def __init__(self, path: Path):
        self._path = path
        self._profiler: torch.profiler.profile | None = None

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._profiler = torch.profiler.profile(
            schedule=torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=1), on_trace_ready=self._write, with_stack=True
        )
        self._profiler.start()

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._profiler is not None:
            self._profiler.step()

    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if self._profiler is not None:
            self._profiler.stop()
            self._profiler = None

    def _write(self, profiler: torch.profiler.profile) -> None:
        with write_atomically(self._path) as temporary:
            profiler.export_chrome_trace(str(temporary))
        log.info("trace of three steps: %s; open it at ui.perfetto.dev", self._path)


def profiler_of(trainer: L.Trainer) -> Profiler:
    """What a trainer measures its parts with; Lightning's own, which does nothing, where none is asked for."""
    return trainer.profiler  # type: ignore[attr-defined]  # Lightning sets it without a declaration
