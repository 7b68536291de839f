"""What does a head epoch cost when the frozen body's features are computed once?"""

from collections.abc import Callable

from esc50.benchmarks.timing import Measurement, medians

EpochSeconds = Callable[[bool], list[float]]


def measure_frozen_phase(epoch_seconds: EpochSeconds, *, what: str, rounds: int) -> Measurement:
    """Seconds of a frozen epoch; `epoch_seconds(cached)` trains with a frozen body and returns those of each epoch. The
    first cached epoch, in which the features are computed, is listed apart and not part of the ratio."""
    seconds: dict[str, list[float]] = {"recomputed": [], "cached": [], "cached, first epoch": []}
    for _ in range(rounds):
        seconds["recomputed"] += epoch_seconds(False)
        first, *others = epoch_seconds(True)
        seconds["cached, first epoch"].append(first)
        seconds["cached"] += others
    middle = medians(seconds)
    return Measurement(
        title=f"Frozen phase, {what}",
        rows=tuple((name, value, "s/epoch") for name, value in middle.items()),
        ratios={"frozen_phase_cached_vs_recomputed": middle["recomputed"] / middle["cached"]},
        goals={"frozen_phase_cached_vs_recomputed": 10},
        raw=seconds,
        note="what is left is the head and the loop around it",
    )
