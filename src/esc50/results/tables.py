"""Tables of finished runs: leaderboard, comparison, ensemble. Read from their files alone, without torch."""

import logging
from collections.abc import Sequence
from pathlib import Path

from esc50.errors import DataError
from esc50.files import write_atomically
from esc50.results import compare as comparison
from esc50.results import ensemble as ensembles
from esc50.results.leaderboard import by_fold, names_of, systems
from esc50.results.leaderboard import leaderboard as entries_of
from esc50.results.leaderboard_page import write_page
from esc50.results.metrics import score
from esc50.results.predictions import write_predictions
from esc50.results.runs import PREDICTIONS, Run, find_runs, read_run, unfinished_runs

log = logging.getLogger(__name__)


def leaderboard(places: Sequence[Path], folder: Path, *, command: str) -> str:
    """Write leaderboard.md, .csv and .png of all runs at `places` into `folder`; returns the first as text."""
    text = write_page(entries_of(tested_runs(places)), folder, command=command)
    log.info("written to %s: leaderboard.md, leaderboard.csv, leaderboard.png", folder)
    return text


def compare(a: Sequence[Path], b: Sequence[Path], folder: Path) -> str:
    """Write comparison.md of the two systems into `folder`; returns its text."""
    of_a, of_b = one_system(a), one_system(b)
    names = names_of([of_a[0].config, of_b[0].config])
    text = comparison.to_text(comparison.compare(of_a, of_b), a=names[0], b=names[1])
    with write_atomically(folder / "comparison.md") as temporary:
        temporary.write_text(text, encoding="utf-8")
    log.info("written to %s: comparison.md", folder)
    return text


def ensemble(places: Sequence[Path], folder: Path, *, weights: Sequence[float]) -> str:
    """Write ensemble.md and, of each fold, the averaged predictions into `folder`; returns the text of the first."""
    members = [one_system([place]) for place in places]
    averaged = ensembles.ensemble(members, weights=weights)
    folds = sorted(averaged)
    names = names_of([member[0].config for member in members])
    lines = [
        "# Ensemble",
        "",
        "Accuracies in percent; probabilities averaged fold by fold, a member's seeds first.",
        "",
        "| | weight | mean | " + " | ".join(f"fold {fold}" for fold in folds) + " |",
        "|---|---:|---:|" + "---:|" * len(folds),
    ]
    for name, member, weight in zip(names, members, weights, strict=True):
        means = [
            ensembles.average([run.predictions for run in by_fold(member)[fold]], [1.0] * len(by_fold(member)[fold]))
            for fold in folds
        ]
        lines.append(_row(name, f"{weight:g}", [score(one)["accuracy"] for one in means]))
    lines.append(_row("**ensemble**", "", [score(averaged[fold])["accuracy"] for fold in folds]))
    text = "\n".join(lines) + "\n"
    for fold in folds:
        write_predictions(averaged[fold], folder / f"fold_{fold}" / PREDICTIONS)
    with write_atomically(folder / "ensemble.md") as temporary:
        temporary.write_text(text, encoding="utf-8")
    log.info("written to %s: ensemble.md, fold_<n>/%s", folder, PREDICTIONS)
    return text


def _row(name: str, weight: str, accuracies: Sequence[float]) -> str:
    mean = sum(accuracies) / len(accuracies)
    return f"| {name} | {weight} | {100 * mean:.2f} | " + " | ".join(f"{100 * value:.2f}" for value in accuracies) + " |"


def tested_runs(places: Sequence[Path]) -> list[Run]:
    """All tested runs at or below these places, each once; runs that tested nothing (split=all) are left out with a word."""
    folders = dict.fromkeys(folder.resolve() for place in places for folder in find_runs(place))
    for place in places:
        for folder in unfinished_runs(place):
            log.warning("%s is not finished; left out", folder)
    runs = []
    for folder in folders:
        run = read_run(folder)
        if run is None:
            log.info("%s tested no clips (split=all); left out", folder)
        else:
            runs.append(run)
    if not runs:
        raise DataError(f"no run at {', '.join(map(str, places))} tested anything (split=all); train with split=official")
    return runs


def one_system(places: Sequence[Path]) -> list[Run]:
    """The runs of the one system at these places. Raises DataError where there are several."""
    groups = systems(tested_runs(places))
    if len(groups) > 1:
        names = "; ".join(names_of([group[0].config for group in groups]))
        raise DataError(f"{', '.join(map(str, places))} holds {len(groups)} systems ({names}); give the folders of one of them")
    return groups[0]
