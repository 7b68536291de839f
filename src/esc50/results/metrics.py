"""The scores of a set of predictions; one definition for validation, test and every table."""

import numpy as np

from esc50.results.predictions import Predictions

TOP = 5


def score(predictions: Predictions) -> dict[str, float]:
    """`accuracy`, `loss` (mean cross-entropy, natural logarithm), `top5` (the truth among the five most probable, or among
    all where there are fewer) and `macro_f1` (mean over the classes that occur; a class never predicted has 0)."""
    return scores(predictions.probs, predictions.targets)


def scores(probs: np.ndarray, targets: np.ndarray) -> dict[str, float]:
    """The same of bare arrays: `[clips, classes]` and `[clips]`."""
    rows = np.arange(len(targets))
    of_truth = probs[rows, targets]
    k = min(TOP, probs.shape[1])
    best = np.argsort(-probs, axis=1, kind="stable")[:, :k]
    return {
        "accuracy": float((probs.argmax(axis=1) == targets).mean()),
        "loss": float(-np.log(np.maximum(of_truth, np.finfo(np.float64).tiny)).mean()),
        "top5": float((best == targets[:, None]).any(axis=1).mean()),
        "macro_f1": macro_f1(confusion_matrix(targets, probs.argmax(axis=1), num_classes=probs.shape[1])),
    }


def confusion_matrix(targets: np.ndarray, predicted: np.ndarray, *, num_classes: int) -> np.ndarray:
    """Counts `[classes, classes]`, truth in rows, prediction in columns; a class that is absent keeps its row of zeros."""
    matrix = np.zeros((num_classes, num_classes), dtype=np.int64)
    np.add.at(matrix, (targets, predicted), 1)
    return matrix


def macro_f1(matrix: np.ndarray) -> float:
    """Mean F1 over the classes with clips, from a confusion matrix."""
    hits, truths, guesses = np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)
    present = truths > 0
    return float((2 * hits[present] / (truths[present] + guesses[present])).mean())
