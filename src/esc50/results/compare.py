"""Two systems on the same clips: the difference, how sure it is, and which classes gained and lost."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from esc50.errors import DataError
from esc50.results.leaderboard import bootstrap, check_same_task, correct_clips
from esc50.results.runs import Run


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """`b` minus `a`, paired by clip; accuracies are fractions, each the mean over clips with seeds averaged first.

    `difference` lies within `ci_low`..`ci_high` (95 % bootstrap over clips); `only_a` and `only_b` are the clips that one
    got right in most of its seeds and the other did not, `p_value` is McNemar's exact test of these (McNemar 1947);
    `classes` has for each class its clips and both accuracies, the largest gain first.
    """

    accuracy_a: float
    accuracy_b: float
    difference: float
    ci_low: float
    ci_high: float
    only_a: int
    only_b: int
    p_value: float
    num_clips: int
    folds: tuple[int, ...]
    classes: tuple[tuple[str, int, float, float], ...]


def compare(a: Sequence[Run], b: Sequence[Run]) -> Comparison:
    """Compare the runs of two systems. Raises DataError where they did not test the same clips with the same targets."""
    check_same_task([*a, *b])
    of_a, of_b = (
        {filename: value for clips in correct_clips(runs).values() for filename, value in clips.items()} for runs in (a, b)
    )
    if of_a.keys() != of_b.keys():
        lacking = len(of_a.keys() ^ of_b.keys())
        raise DataError(
            f"a tested {len(of_a)} clips and b {len(of_b)}, of which {lacking} are not in both; compare runs of the same folds"
        )
    names = sorted(of_a)
    values_a, values_b = (np.array([of[name] for name in names]) for of in (of_a, of_b))
    low, high = bootstrap(values_b - values_a, np.ones(len(names)))
    right_a, right_b = values_a > 0.5, values_b > 0.5
    only_a, only_b = int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
    p_value = float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0
    return Comparison(
        accuracy_a=float(values_a.mean()),
        accuracy_b=float(values_b.mean()),
        difference=float((values_b - values_a).mean()),
        ci_low=low,
        ci_high=high,
        only_a=only_a,
        only_b=only_b,
        p_value=p_value,
        num_clips=len(names),
        folds=tuple(sorted({run.fold for run in a})),
        classes=_by_class(a, names, values_a, values_b),
    )


def _by_class(
    runs: Sequence[Run], names: Sequence[str], values_a: np.ndarray, values_b: np.ndarray
) -> tuple[tuple[str, int, float, float], ...]:
    target_of = {
        filename: target
        for run in runs
        for filename, target in zip(run.predictions.filenames, run.predictions.targets.tolist(), strict=True)
    }
    targets = np.array([target_of[name] for name in names])
    rows = [
        (
            name,
            int((targets == target).sum()),
            float(values_a[targets == target].mean()),
            float(values_b[targets == target].mean()),
        )
        for target, name in enumerate(runs[0].predictions.class_names)
        if (targets == target).any()
    ]
    return tuple(sorted(rows, key=lambda row: row[2] - row[3]))


def to_text(comparison: Comparison, *, a: str, b: str) -> str:
    """The comparison as markdown."""
    one = comparison
    lines = [
        f"# {b} against {a}",
        "",
        f"{one.num_clips} clips of folds {', '.join(map(str, one.folds))}, paired. Accuracies in percent.",
        "",
        "| | |",
        "|---|---:|",
        f"| a: {a} | {100 * one.accuracy_a:.2f} |",
        f"| b: {b} | {100 * one.accuracy_b:.2f} |",
        f"| difference, b - a | {100 * one.difference:+.2f} |",
        f"| 95 % interval (bootstrap over clips) | {100 * one.ci_low:+.2f} to {100 * one.ci_high:+.2f} |",
        f"| right in a only, in b only | {one.only_a}, {one.only_b} |",
        f"| McNemar's exact test | p = {one.p_value:.3g} |",
        "",
        "| class | clips | a | b | b - a |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {name} | {clips} | {100 * of_a:.1f} | {100 * of_b:.1f} | {100 * (of_b - of_a):+.1f} |"
        for name, clips, of_a, of_b in one.classes
    ]
    return "\n".join(lines) + "\n"
