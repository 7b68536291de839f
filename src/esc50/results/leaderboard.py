"""The leaderboard: what each system scores over folds and seeds, honestly chosen, among the published results."""

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from esc50.errors import DataError
from esc50.results.runs import WITHOUT_EFFECT, Run, differing_keys, flat

NUM_FOLDS = 5
NUM_RESAMPLES = 10_000
CONFIDENCE = 0.95
# What a run may differ in from another of the same system.
NOT_OF_THE_SYSTEM = (*WITHOUT_EFFECT, "fold", "seed", "objective", "report_optimistic")
SELECTIONS = {"official": "last epoch", "holdout": "best epoch on a validation fold"}
ESC10 = frozenset(
    {"chainsaw", "clock_tick", "crackling_fire", "crying_baby", "dog", "helicopter", "rain", "rooster", "sea_waves", "sneezing"}
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """A line of the table. Accuracies are fractions; `accuracy_std` is that of the folds (n - 1), seeds averaged first,
    None for a single fold; `ci_low`..`ci_high` is the 95 % bootstrap interval over clips; what is not known is None."""

    system: str
    accuracy_mean: float
    selection: str
    source: str
    folds: int | None = None
    seeds: int | None = None
    accuracy_std: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    fold_accuracies: Mapping[int, float] = field(default_factory=dict)
    optimistic_mean: float | None = None
    epochs: int | None = None
    parameters: int | None = None
    train_seconds: float | None = None
    input: str = ""
    pretraining: str = ""

    @property
    def is_ours(self) -> bool:
        return self.folds is not None

    @property
    def is_partial(self) -> bool:
        return self.folds is not None and self.folds < NUM_FOLDS


def leaderboard(runs: Sequence[Run]) -> list[Entry]:
    """Every system of `runs` and the published results on the same data, best first. Raises DataError where the runs do not
    belong into one table."""
    check_same_task(runs)
    groups = systems(runs)
    names = names_of([members[0].config for members in groups])
    ours = [entry(name, members) for name, members in zip(names, groups, strict=True)]
    return sorted([*ours, *published(runs[0].predictions.class_names)], key=lambda entry: -entry.accuracy_mean)


def check_same_task(runs: Sequence[Run]) -> None:
    """Raise DataError where class lists differ, or a clip has different targets or folds in two runs."""
    first = runs[0]
    known: dict[str, tuple[int, int, Path]] = {}
    for run in runs:
        if run.predictions.class_names != first.predictions.class_names:
            raise DataError(
                f"{run.folder} and {first.folder} have other classes ({len(run.predictions.class_names)} and"
                f" {len(first.predictions.class_names)}); compare runs on the same data set only"
            )
        for filename, fold, target in zip(
            run.predictions.filenames, run.predictions.folds, run.predictions.targets.tolist(), strict=True
        ):
            fold_, target_, other = known.setdefault(filename, (fold, target, run.folder))
            if (fold_, target_) != (fold, target):
                raise DataError(
                    f"{filename} has fold {fold} and target {target} in {run.folder}, but fold {fold_} and target"
                    f" {target_} in {other}; compare runs on the same data set only"
                )


def systems(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs whose configurations differ in fold and seed at most, together, in order of fold and seed. Raises DataError where
    a system has a fold and seed twice, or seeds of one fold that tested other clips."""
    groups: list[list[Run]] = []
    for run in runs:
        for group in groups:
            if not differing_keys(run.config, group[0].config, free=NOT_OF_THE_SYSTEM):
                group.append(run)
                break
        else:
            groups.append([run])
    for group in groups:
        group.sort(key=lambda run: (run.fold, run.seed))
        for one, other in pairwise(group):
            if (one.fold, one.seed) == (other.fold, other.seed):
                raise DataError(
                    f"{one.folder} and {other.folder} are the same system with the same fold {one.fold} and seed"
                    f" {one.seed}; leave one out"
                )
            if one.fold == other.fold and set(one.predictions.filenames) != set(other.predictions.filenames):
                raise DataError(
                    f"{one.folder} and {other.folder} tested different clips of fold {one.fold}; evaluate both on the same data"
                )
    return groups


def by_fold(members: Sequence[Run]) -> dict[int, list[Run]]:
    """The runs of each fold."""
    folds: dict[int, list[Run]] = defaultdict(list)
    for run in members:
        folds[run.fold].append(run)
    return dict(folds)


def correct_clips(members: Sequence[Run]) -> dict[int, dict[str, float]]:
    """Of each fold each clip's share of seeds that got it right."""
    found: dict[int, dict[str, float]] = {}
    for fold, runs in by_fold(members).items():
        sums: dict[str, float] = defaultdict(float)
        for run in runs:
            hits = run.predictions.predicted == run.predictions.targets
            for filename, hit in zip(run.predictions.filenames, hits.tolist(), strict=True):
                sums[filename] += hit / len(runs)
        found[fold] = dict(sums)
    return found


def bootstrap(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """95 % interval of the weighted mean of `values` `[clips]` over resampled clips (Efron 1979), always the same."""
    generator = np.random.default_rng(0)
    means = np.empty(NUM_RESAMPLES)
    for i in range(NUM_RESAMPLES):
        chosen = generator.integers(0, len(values), len(values))
        means[i] = (values[chosen] * weights[chosen]).sum() / weights[chosen].sum()
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def entry(name: str, members: Sequence[Run]) -> Entry:
    """The line of one system, whose runs `members` are."""
    correct = correct_clips(members)
    accuracies = {fold: float(np.mean(list(clips.values()))) for fold, clips in sorted(correct.items())}
    values = np.array([value for clips in correct.values() for value in clips.values()])
    # Every fold counts the same, as in the mean over folds.
    weights = np.array([1 / len(clips) for clips in correct.values() for _ in clips])
    low, high = bootstrap(values, weights)
    folds = list(accuracies.values())
    metrics = [run.metrics for run in members]
    optimistic = [one["optimistic_test_accuracy"] for one in metrics if one.get("optimistic_test_accuracy") is not None]
    return Entry(
        system=name,
        folds=len(folds),
        seeds=len({run.seed for run in members}),
        accuracy_mean=float(np.mean(folds)),
        accuracy_std=float(np.std(folds, ddof=1)) if len(folds) > 1 else None,
        ci_low=low,
        ci_high=high,
        fold_accuracies=accuracies,
        optimistic_mean=_mean_over_folds(members, optimistic) if len(optimistic) == len(members) else None,
        epochs=members[0].config["trainer"]["max_epochs"],
        parameters=metrics[0].get("parameters"),
        train_seconds=sum(one.get("train_seconds", 0) for one in metrics),
        selection=_selection(members),
        source=f"{len(members)} runs here",
        input=str(members[0].config["features"]["kind"]),
        pretraining=str(members[0].config["model"].get("weights") or "none"),
    )


def _mean_over_folds(members: Sequence[Run], values: Sequence[float]) -> float:
    of_fold: dict[int, list[float]] = defaultdict(list)
    for run, value in zip(members, values, strict=True):
        of_fold[run.fold].append(value)
    return float(np.mean([np.mean(one) for one in of_fold.values()]))


def _selection(members: Sequence[Run]) -> str:
    return SELECTIONS.get(members[0].metrics["protocol"], "")


def names_of(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """A short name for each system: model and augmentation, then whatever else tells it from those of the same name."""
    short = [_short_name(config) for config in configs]
    names = []
    for i, config in enumerate(configs):
        twins = [other for j, other in enumerate(configs) if j != i and short[j] == short[i]]
        told_apart = sorted({key for twin in twins for key in differing_keys(config, twin, free=NOT_OF_THE_SYSTEM)})
        values = flat(config)
        names.append(", ".join([short[i], *(f"{key}={_shown(values.get(key, 'absent'))}" for key in told_apart)]))
    return names


def _shown(value: Any) -> str:
    """As much of a number as a search of some trials needs to tell them apart."""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _short_name(config: Mapping[str, Any]) -> str:
    model = config["model"].get("name") or str(config["model"]["_target_"]).rpartition(".")[2]
    parts = [name for slot in (config.get("augment") or {}).values() for name, part in (slot or {}).items() if part]
    return f"{model} + {' + '.join(parts)}" if parts else str(model)


def dataset_of(class_names: Sequence[str]) -> str | None:
    """`ESC-10` or `ESC-50` by the class names, None for other data."""
    names = set(class_names)
    return "ESC-10" if names == ESC10 else "ESC-50" if len(names) == 50 and names > ESC10 else None


def published(class_names: Sequence[str]) -> list[Entry]:
    """The published results on the data set with these classes; none for other data."""
    dataset = dataset_of(class_names)
    text = resources.files("esc50.results").joinpath("published.csv").read_text(encoding="utf-8")
    return [
        Entry(
            system=row["system"],
            accuracy_mean=float(row["accuracy"]),
            selection=row["selection"],
            source=row["source"],
            input=row["input"],
            pretraining=row["pretraining"],
        )
        for row in csv.DictReader(text.splitlines())
        if row["dataset"] == dataset
    ]
