"""The score that stands for a model that was trained on all clips: that of its recipe, cross-validated."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from esc50.errors import ConfigError, DataError
from esc50.results.leaderboard import NOT_OF_THE_SYSTEM, entry, systems
from esc50.results.runs import differing_keys, find_runs, read_run

KEPT = ("accuracy_mean", "accuracy_std", "ci_low", "ci_high", "folds", "seeds", "selection")
# What a refit changes, and on what it is computed.
FREE_KEYS = (*NOT_OF_THE_SYSTEM, "split", "trainer.accelerator", "trainer.devices", "trainer.strategy", "trainer.precision")


def cross_validated(place: str | Path, config: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Score and class names of the runs at or below `place` that were trained as `config` says, on some folds: the numbers
    KEPT of the leaderboard, and `place`. Raises ConfigError where none was, naming what is different; DataError where there
    are no runs."""
    runs = [run for run in map(read_run, find_runs(place)) if run is not None]
    if not runs:
        raise DataError(f"scored_by={place}: its runs tested nothing; give the folder of a cross-validation, sweep=folds")
    groups = systems(runs)
    different = [differing_keys(config, members[0].config, free=FREE_KEYS) for members in groups]
    if [] not in different:
        nearest = min(different, key=len)
        raise ConfigError(
            f"scored_by={place}: its runs were trained with another {', '.join(nearest)}; a score stands only for"
            " the recipe it was measured with"
        )
    if different.count([]) > 1:
        raise ConfigError(
            f"scored_by={place}: it holds {different.count([])} scores of this recipe, by several protocols or"
            " devices; give the folder of one sweep"
        )
    members = groups[different.index([])]
    found = entry("", members)
    return {key: getattr(found, key) for key in KEPT} | {"place": str(place)}, members[0].predictions.class_names
