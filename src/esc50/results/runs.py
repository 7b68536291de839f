"""What a finished run left in its folder, read back: configuration, scores, predictions."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from esc50.errors import DataError
from esc50.results.predictions import Predictions, read_predictions
from esc50.results.record import METRICS, read_metrics

CONFIG = "config.yaml"
PREDICTIONS = "predictions.csv"
# What makes no other result: where things lie, how they are watched and how fast they are read.
WITHOUT_EFFECT = (
    "paths",
    "watch",
    "resume",
    "scored_by",
    "trainer.profile",
    "data.root",
    "data.creates",
    "data.archive",
    "data.url",
    "data.folds_csv",
    "loader.num_workers",
    "loader.memory_limit_gb",
    "features.colormap",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A tested run: its `folder`, resolved `config`, the content of metrics.json and its predictions."""

    folder: Path
    config: Mapping[str, Any]
    metrics: Mapping[str, Any]
    predictions: Predictions

    @property
    def fold(self) -> int:
        return self.metrics["fold"]

    @property
    def seed(self) -> int:
        return self.metrics["seed"]


def read_run(folder: str | Path) -> Run | None:
    """Read a run folder; None where the run had nothing to test (split=all). Raises DataError where it has no config, scores
    or predictions."""
    folder = Path(folder)
    metrics = read_metrics(folder)
    if metrics.get("protocol") == "all":
        return None
    predictions = read_predictions(folder / PREDICTIONS)
    path = folder / CONFIG
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise DataError(f"{path} cannot be read ({error}); a run leaves one in its folder") from None
    return Run(folder=folder, config=config, metrics=metrics, predictions=predictions)


def find_runs(place: str | Path) -> list[Path]:
    """Folders of runs at or below `place`: those that hold a metrics.json. Raises DataError where there is none."""
    place = Path(place)
    found = sorted({path.parent for path in place.rglob(METRICS) if (path.parent / CONFIG).is_file()}) if place.is_dir() else []
    if not found:
        raise DataError(f"no finished run at or below {place}; train first, or give the folder of a run or a sweep")
    return found


def unfinished_runs(place: str | Path) -> list[Path]:
    """Folders at or below `place` of runs that were begun and have no scores yet."""
    return sorted(
        path.parent
        for path in Path(place).rglob(CONFIG)
        if path.parent.name != ".hydra" and not (path.parent / METRICS).is_file()
    )


def differing_keys(one: Mapping[str, Any], other: Mapping[str, Any], *, free: tuple[str, ...] = WITHOUT_EFFECT) -> list[str]:
    """Keys whose values differ, less `free` ones and what is below them."""
    now, then, absent = flat(one), flat(other), object()
    return sorted(
        key
        for key in now.keys() | then.keys()
        if now.get(key, absent) != then.get(key, absent) and not any(key == name or key.startswith(name + ".") for name in free)
    )


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Whole keys such as `features.n_mels` with their values."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) and value else {f"{prefix}{key}": value}
    return found
