"""An ensemble of finished runs: their probabilities averaged fold by fold."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from esc50.errors import DataError
from esc50.results.leaderboard import by_fold, check_same_task
from esc50.results.predictions import Predictions
from esc50.results.runs import Run


def ensemble(members: Sequence[Sequence[Run]], *, weights: Sequence[float]) -> dict[int, Predictions]:
    """Of each fold the weighted mean of the members' probabilities; a member's seeds are averaged first.

    `members`: the runs of each member. Raises DataError where the members do not cover the same folds with the same clips.
    """
    assert len(members) == len(weights)
    check_same_task([run for runs in members for run in runs])
    of_members = [
        {fold: average([run.predictions for run in runs], [1.0] * len(runs)) for fold, runs in by_fold(member).items()}
        for member in members
    ]
    folds = [tuple(sorted(member)) for member in of_members]
    if len(set(folds)) > 1:
        raise DataError(f"the members have other folds ({', '.join(map(str, folds))}); an ensemble wants the same of each")
    return {fold: average([member[fold] for member in of_members], weights) for fold in folds[0]}


def average(predictions: Sequence[Predictions], weights: Sequence[float]) -> Predictions:
    """The weighted mean of the probabilities of the same clips, in the order of the first. Raises DataError where the clips
    differ."""
    first = predictions[0]
    rows = {filename: row for row, filename in enumerate(first.filenames)}
    total = np.zeros_like(first.probs)
    for one, weight in zip(predictions, weights, strict=True):
        if set(one.filenames) != rows.keys():
            raise DataError(
                f"the members tested different clips of fold {first.folds[0]} ({len(one.filenames)} and"
                f" {len(rows)}); evaluate them on the same data"
            )
        order = np.argsort([rows[filename] for filename in one.filenames])
        total += weight * one.probs[order]
    return replace(first, probs=total / sum(weights))
