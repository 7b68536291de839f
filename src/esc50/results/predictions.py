"""The predictions file: one row a clip, enough to rebuild every table without a model."""

import csv
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from esc50.data.clip import Clip
from esc50.errors import DataError
from esc50.files import write_atomically

FIXED = ("filename", "fold", "target", "predicted")


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictions:
    """Class probabilities of some clips.

    `filenames` and `folds`: one a clip; `targets`: `[clips]` int64, the truth; `probs`: `[clips, classes]` float64;
    `class_names` in the order of the columns, which is the order of the targets.
    """

    filenames: tuple[str, ...]
    folds: tuple[int, ...]
    targets: np.ndarray
    probs: np.ndarray
    class_names: tuple[str, ...]

    @property
    def predicted(self) -> np.ndarray:
        """Most probable class of each clip, `[clips]`."""
        return self.probs.argmax(axis=1)

    def rows(self) -> list[dict[str, str | int | float]]:
        """One dict a clip, such as `pandas.DataFrame` takes: filename, fold, the names of the true and of the most probable
        class, and the latter's probability."""
        columns = zip(self.filenames, self.folds, self.targets, self.predicted, self.probs.max(axis=1), strict=True)
        return [
            {
                "filename": filename,
                "fold": fold,
                "category": self.class_names[target],
                "predicted": self.class_names[predicted],
                "probability": float(probability),
            }
            for filename, fold, target, predicted, probability in columns
        ]

    def _repr_html_(self) -> str:
        """How a notebook shows it: the table."""
        rows = self.rows()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in rows[0])
        body = "".join(
            "<tr>"
            + "".join(
                f"<td>{value:.3f}</td>" if isinstance(value, float) else f"<td>{html.escape(str(value))}</td>"
                for value in row.values()
            )
            + "</tr>"
            for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def predictions_of(clips: Sequence[Clip], targets: np.ndarray, probs: np.ndarray, *, names: tuple[str, ...]) -> Predictions:
    """What a model says of `clips`: `targets` `[clips]` and `probs` `[clips, classes]` in their order."""
    return Predictions(
        filenames=tuple(clip.filename for clip in clips),
        folds=tuple(clip.fold for clip in clips),
        targets=targets,
        probs=probs,
        class_names=names,
    )


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities `[clips, classes]` in float64, so that none of a float32 network's vanishes in a file."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def write_predictions(predictions: Predictions, path: str | Path) -> None:
    """Write the columns filename, fold, target, predicted and prob_<class>; numbers in full, so they read back exactly."""
    with write_atomically(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow((*FIXED, *(f"prob_{name}" for name in predictions.class_names)))
        for filename, fold, target, predicted, probs in zip(
            predictions.filenames, predictions.folds, predictions.targets, predictions.predicted, predictions.probs, strict=True
        ):
            writer.writerow((filename, fold, int(target), int(predicted), *(repr(float(prob)) for prob in probs)))


def read_predictions(path: str | Path) -> Predictions:
    """Read such a file. Raises DataError where it is missing or not one."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"no predictions at {path}; a run that was tested leaves predictions.csv in its folder")
    try:
        with path.open(newline="", encoding="utf-8") as file:
            text = file.read()
        header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True) if text else [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a predictions file but something else ({error})") from None
    names = _class_names(header, path)
    try:
        if not rows or not text.endswith("\n") or any(len(row) != len(header) for row in rows):
            raise ValueError("it was cut short")
        targets = np.array([int(row[2]) for row in rows], dtype=np.int64)
        if targets.min() < 0 or targets.max() >= len(names):
            raise ValueError(f"a target is not within 0 to {len(names) - 1}")
        probs = np.array([[float(value) for value in row[len(FIXED) :]] for row in rows])
        return Predictions(
            filenames=tuple(row[0] for row in rows),
            folds=tuple(int(row[1]) for row in rows),
            targets=targets,
            probs=probs,
            class_names=names,
        )
    except ValueError as error:
        raise DataError(f"{path} is not a whole predictions file ({error}); evaluate the run again") from None


def _class_names(header: Sequence[str], path: Path) -> tuple[str, ...]:
    columns = header[len(FIXED) :]
    if tuple(header[: len(FIXED)]) != FIXED or not columns or not all(name.startswith("prob_") for name in columns):
        raise DataError(f"{path} is not a predictions file: wanted the columns {', '.join(FIXED)}, prob_<class>...")
    return tuple(name.removeprefix("prob_") for name in columns)
