"""What does a training step cost? A plain float32 loop, a bare loop with our precision and layout, and the real path."""

import time
from collections.abc import Callable
from typing import Any

import lightning as L
import torch
import torch.nn.functional as F
from torch import Tensor

from esc50.benchmarks.timing import Measurement, medians, take_turns
from esc50.training.memory import give_freed_memory_back, keep_freed_memory
from esc50.training.task import Classifier

WARM_UP = 2  # steps of the real path that are not counted: the first ones allocate

RealSteps = Callable[[str, int], list[float]]


class StepTimes(L.Callback):
    """Seconds from the end of one training step to the end of the next, the whole loop included."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._last: float | None = None

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        now = time.perf_counter()
        if self._last is not None:
            self.seconds.append(now - self._last)
        self._last = now


class EpochTimes(L.Callback):
    """Seconds of every epoch, from its start to its end."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._started = 0.0

    # Callbacks come before the task's own hook, in which a frozen body's features are computed: the clock runs by then.
    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._started = time.perf_counter()

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.seconds.append(time.perf_counter() - self._started)


def measure_step(
    name: str,
    *,
    make_task: Callable[[], Classifier],
    stored: Tensor,
    target: Tensor,
    precision: str,
    real_steps: RealSteps,
    rounds: int,
    steps: int,
    plain_goal: float | None,
) -> Measurement:
    """Seconds a step of model `name` on one batch.

    `stored`, `target`: a batch as the store gives it; `precision`: the one that training resolves to; `real_steps(watch,
    steps)` trains so many steps as train.py does, without augmentation, and returns the seconds of each warm one.
    """
    loop = bare_loop(make_task(), stored, target, bfloat16=False, channels_last=False, steps=steps)

    def plain() -> None:
        # As a loop that nobody has tuned finds the C library.
        give_freed_memory_back()
        loop()
        keep_freed_memory()

    ours = bare_loop(make_task(), stored, target, bfloat16=precision == "bfloat16", channels_last=True, steps=steps)
    real: dict[str, list[float]] = {"none": [], "default": []}

    def real_path(watch: str) -> None:
        real[watch] += real_steps(watch, steps + WARM_UP)[WARM_UP - 1 :]

    seconds = take_turns(
        {"plain": plain, "bare": ours, "none": lambda: real_path("none"), "default": lambda: real_path("default")}, rounds=rounds
    )
    a_step = {
        "plain float32 loop, memory given back": [value / steps for value in seconds["plain"]],
        f"bare loop, {precision}, our layout": [value / steps for value in seconds["bare"]],
        "train.py, watch=none": real["none"],
        "train.py, watch=default": real["default"],
    }
    middle = medians(a_step)
    plain_, bare, none, default = middle.values()
    ratios = {
        f"step_{name}_vs_plain": plain_ / bare,
        f"loop_{name}_vs_bare": bare / none,
        f"watch_{name}_vs_none": none / default,
    }
    goals = {f"loop_{name}_vs_bare": 0.95}
    if plain_goal is not None:
        goals[f"step_{name}_vs_plain"] = plain_goal
    return Measurement(
        title=f"Training step, {name}, batch of {len(stored)}",
        rows=tuple((what, 1000 * value, "ms/step") for what, value in middle.items()),
        ratios=ratios,
        goals=goals,
        raw=a_step,
        note="convolutions; the plain loop also pays for memory that the C library maps anew at every step",
    )


def bare_loop(
    task: Classifier, stored: Tensor, target: Tensor, *, bfloat16: bool, channels_last: bool, steps: int
) -> Callable[[], None]:
    """Forward, loss, backward, update on constant tensors, nothing else."""
    model = task.model.train()
    layout = torch.channels_last if channels_last else torch.contiguous_format
    with torch.no_grad():
        x = task.front_end(stored)
    model = model.to(memory_format=layout)
    if x.dim() == 4:
        x = x.contiguous(memory_format=layout)
    optimizer = task.make_optimizer()

    def loop() -> None:
        for _ in range(steps):
            with torch.autocast(x.device.type, torch.bfloat16, enabled=bfloat16):
                logits = model(x)["logits"]
            loss = F.cross_entropy(logits.float(), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return loop
