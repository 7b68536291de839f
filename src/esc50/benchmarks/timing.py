"""How things are timed: contestants take turns in one run, and medians of several rounds are compared."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The answer to one question.

    `rows`: lines of the table, each (what, value, unit); `ratios`: figures with a name, larger is better unless the name
    ends in `_time`; `goals`: what each ratio should reach; `raw`: every single figure; `note`: what limits the result.
    """

    title: str
    rows: tuple[tuple[str, float, str], ...]
    note: str
    ratios: Mapping[str, float] = field(default_factory=dict)
    goals: Mapping[str, float] = field(default_factory=dict)
    raw: Mapping[str, list[float]] = field(default_factory=dict)

    def reached(self, name: str) -> bool:
        """Whether a ratio with a goal reaches it; times should stay below theirs."""
        value, goal = self.ratios[name], self.goals[name]
        return value <= goal if name.endswith("_time") else value >= goal


def take_turns(contestants: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, list[float]]:
    """Seconds of each contestant in each round; one call of each before counts for nothing."""
    for contestant in contestants.values():
        contestant()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds):
        order = list(contestants) if number % 2 == 0 else list(contestants)[::-1]
        for name in order:
            started = time.perf_counter()
            contestants[name]()
            seconds[name].append(time.perf_counter() - started)
    return seconds


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    """Median of each contestant's rounds."""
    return {name: statistics.median(values) for name, values in seconds.items()}
