"""What does watching cost? Epochs with the default panels against epochs without any."""

import statistics
from collections.abc import Callable

from esc50.benchmarks.timing import Measurement

GOAL = 1.05
RUN_EPOCHS = 50  # the length of a run, over which what is written once is spread

# Seconds of a whole training with some panels, and of each of its epochs, validation included.
Fit = Callable[[str], tuple[float, list[float]]]


def measure_watch(fit: Fit, *, what: str, rounds: int) -> Measurement:
    """`fit(watch)` trains with `watch=none` or `watch=default`; they take turns."""
    totals: dict[str, list[float]] = {"none": [], "default": []}
    epochs: dict[str, list[float]] = {"none": [], "default": []}
    for number in range(rounds):
        for watch in list(totals) if number % 2 == 0 else list(totals)[::-1]:
            total, each = fit(watch)
            steady = statistics.median(each[1:-1])  # the first one warms up, the last one shows every picture
            epochs[watch].append(steady)
            totals[watch].append(total - steady * len(each))
    steady = {watch: statistics.median(values) for watch, values in epochs.items()}
    once = {watch: statistics.median(values) for watch, values in totals.items()}
    whole = {watch: steady[watch] + once[watch] / RUN_EPOCHS for watch in steady}
    rows = [(f"watch={watch}, an epoch", steady[watch], "s") for watch in steady]
    rows += [(f"watch={watch}, start and end of a run", once[watch], "s") for watch in steady]
    return Measurement(title=f"Watching, {what}", rows=tuple(rows),
                       ratios={"watch_default_epoch_time": whole["default"] / whole["none"]},
                       goals={"watch_default_epoch_time": GOAL}, raw={**{f"{watch}, epochs": epochs[watch] for watch in epochs}},
                       note=f"drawing the confusion matrix of every epoch; the ratio is that of a run of {RUN_EPOCHS} epochs")
