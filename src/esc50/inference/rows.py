"""Answers as text: a table for people, rows for programs."""

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

from esc50.inference.answer import Prediction, Window

COLUMNS = ("file", "label", "probability", "top", "windows")
DIGITS = 6  # of a probability
BAR = 20  # signs of a bar that stands for 1


def fields_of(prediction: Prediction) -> dict[str, Any]:
    """Plain data for one recording; `windows` only of a long one, seconds from its beginning."""
    fields = {
        "file": prediction.file,
        "label": prediction.label,
        "probability": round(prediction.probability, DIGITS),
        "top": [{"label": guess.label, "probability": round(guess.probability, DIGITS)} for guess in prediction.top],
    }
    if prediction.windows:
        fields["windows"] = [
            {
                "start": round(window.start, 3),
                "end": round(window.end, 3),
                "label": window.label,
                "probability": round(window.probability, DIGITS),
            }
            for window in prediction.windows
        ]
    return fields


def json_row(prediction: Prediction) -> str:
    """One line of JSON."""
    return json.dumps(fields_of(prediction), ensure_ascii=False)


def csv_header() -> str:
    """The first line of CSV."""
    return _csv_line(COLUMNS)


def csv_row(prediction: Prediction) -> str:
    """One line of CSV; `top` and `windows` hold JSON, `windows` nothing for a short recording."""
    fields = fields_of(prediction)
    nested = {key: json.dumps(fields[key], ensure_ascii=False) if key in fields else "" for key in ("top", "windows")}
    return _csv_line([(fields | nested)[column] for column in COLUMNS])


def _csv_line(values: Any) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def table(prediction: Prediction) -> str:
    """What a person reads of one recording: its answer, the most probable classes, and of a long one the time-line."""
    width = max(len(guess.label) for guess in prediction.top)
    lines = [f"{prediction.file}  {clock(prediction.seconds)}  {prediction.label}"]
    lines += [
        f"  {guess.label:{width}}  {guess.probability:6.1%}  {'█' * round(BAR * guess.probability)}".rstrip()
        for guess in prediction.top
    ]
    return "\n".join([*lines, *(f"  {stretch}" for stretch in timeline(prediction.timeline))])


def timeline(stretches: tuple[Window, ...]) -> list[str]:
    """A line a stretch of one label: from, to, label, mean probability of its windows."""
    return [f"{clock(one.start)} - {clock(one.end)}  {one.label} ({one.probability:.1%})" for one in stretches]


def clock(seconds: float) -> str:
    """`1:02:03.4` with hours, `2:03.4` without."""
    minutes, rest = divmod(round(seconds, 1), 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02d}:{rest:04.1f}" if hours else f"{minutes}:{rest:04.1f}"


def worth(description: Mapping[str, Any]) -> str:
    """A sentence on how far the answers of a checkpoint can be trusted, by what it says of itself."""
    score, other = description.get("score"), description.get("scored_by")
    if score is not None:
        tested = (
            f"The model got {score['test_accuracy']:.1%} of the {score['clips']} test clips right (fold {score['fold']},"
            f" split={score['protocol']})."
        )
    elif other is not None:
        spread = "" if other["accuracy_std"] is None else f" +- {other['accuracy_std']:.1%}"
        tested = (
            f"The model was trained on all clips and has no test score of its own; its recipe was cross-validated at"
            f" {other['accuracy_mean']:.1%}{spread} ({_count(other['folds'], 'fold')}, {_count(other['seeds'], 'seed')},"
            f" {other['selection']})."
        )
    else:
        tested = "The model has no test score."
    calibrated = description.get("temperature") is not None
    return tested + (
        " Its probabilities are calibrated on validation clips."
        if calibrated
        else " Its probabilities are uncalibrated: no validation clips were there to fit them to."
    )


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")
