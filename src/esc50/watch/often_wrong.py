"""Which clips are wrong again and again? Counted over all validations of a run; many of them are wrongly labelled."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from esc50.data.clip import Clip
from esc50.files import write_atomically
from esc50.results.predictions import Predictions

COLUMNS = ("filename", "category", "times_wrong", "epochs", "most_predicted", "mean_loss")


def clip_losses(predictions: Predictions) -> np.ndarray:
    """Cross-entropy of each clip's truth, natural logarithm, `[clips]`; its mean is the loss of `results.metrics`."""
    of_truth = predictions.probs[np.arange(len(predictions.targets)), predictions.targets]
    return -np.log(np.maximum(of_truth, np.finfo(np.float64).tiny))


class WrongCounts:
    """What was wrong in the validations so far, by file name."""

    def __init__(self) -> None:
        self.epochs = 0
        self._losses: dict[str, float] = {}  # summed over the epochs
        self._taken_for: dict[str, dict[str, int]] = {}  # how often for which class, right ones left out

    def add(self, predictions: Predictions) -> None:
        """Count one validation."""
        self.epochs += 1
        for filename, loss in zip(predictions.filenames, clip_losses(predictions).tolist(), strict=True):
            self._losses[filename] = self._losses.get(filename, 0.0) + loss
        predicted = predictions.predicted
        for i in np.flatnonzero(predicted != predictions.targets):
            counts = self._taken_for.setdefault(predictions.filenames[i], {})
            name = predictions.class_names[predicted[i]]
            counts[name] = counts.get(name, 0) + 1

    def rows(self, clips: Sequence[Clip]) -> list[tuple]:
        """A row of COLUMNS for each of `clips` that was ever wrong, the most often wrong first, then by mean loss."""
        rows = []
        for clip in clips:
            if counts := self._taken_for.get(clip.filename):
                most = min(counts, key=lambda name: (-counts[name], name))
                rows.append(
                    (
                        clip.filename,
                        clip.category,
                        sum(counts.values()),
                        self.epochs,
                        most,
                        self._losses[clip.filename] / self.epochs,
                    )
                )
        return sorted(rows, key=lambda row: (-row[2], -row[5], row[0]))

    def state_dict(self) -> dict[str, Any]:
        """Builtin types only, as checkpoints hold."""
        return {
            "epochs": self.epochs,
            "losses": dict(self._losses),
            "taken_for": {filename: dict(counts) for filename, counts in self._taken_for.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epochs, self._losses = state["epochs"], dict(state["losses"])
        self._taken_for = {filename: dict(counts) for filename, counts in state["taken_for"].items()}


def write_often_wrong(rows: Sequence[tuple], path: str | Path) -> None:
    """Write the rows below a header of COLUMNS; the file appears whole."""
    with write_atomically(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows((*row[:-1], f"{row[-1]:.4f}") for row in rows)
