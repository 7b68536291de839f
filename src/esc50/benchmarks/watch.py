"""What does watching cost? The time that panels and the writing of events take of an epoch."""

import statistics
from collections.abc import Callable
from typing import cast

import lightning as L

from esc50.benchmarks.timing import Measurement
from esc50.training.profile import PartsProfiler, profiler_of

GOAL = 1.05
RUN_EPOCHS = 50  # the length of a run, over which what is written once is spread


class LoggingTimes(L.Callback):
    """Seconds in callbacks and logger from epoch to epoch, as the trainer's PartsProfiler counts them; the first number
    includes what is written before the first epoch."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._before = 0.0

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        now = cast(PartsProfiler, profiler_of(trainer)).seconds["logging"]
        self.seconds.append(now - self._before)
        self._before = now


# Seconds of each epoch of a training with some panels, validation included, and of logging in each.
Fit = Callable[[str], tuple[list[float], list[float]]]


def measure_watch(fit: Fit, *, what: str) -> Measurement:
    """`fit(watch)` trains with `watch=none` or `watch=default`.

    The ratio is not that of two runs: their epochs differ by more than the panels cost. It is what the panels take within
    a run, over an epoch of that run without them.
    """
    epochs, logging = fit("default")
    _, without = fit("none")
    each = statistics.median(logging[1:-1])  # the first epoch has what is written once, the last one shows every picture
    losses = statistics.median(without[1:-1])
    once = sum(logging) - each * len(logging)
    epoch = statistics.median(epochs[1:-1]) - each
    cost = each - losses + once / RUN_EPOCHS
    return Measurement(
        title=f"Watching, {what}",
        rows=(
            ("an epoch without panels", epoch, "s"),
            ("losses and scores, an epoch", 1000 * losses, "ms"),
            ("watch=default, an epoch", 1000 * each, "ms"),
            ("watch=default, first and last epoch of a run more", once, "s"),
        ),
        ratios={"watch_default_epoch_time": 1 + cost / epoch},
        goals={"watch_default_epoch_time": GOAL},
        raw={"epochs": epochs, "logging, watch=default": logging, "logging, watch=none": without},
        note=f"the confusion matrix of every epoch; the ratio is that of a run of {RUN_EPOCHS} epochs",
    )
