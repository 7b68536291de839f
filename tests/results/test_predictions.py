"""The predictions file: exact columns, exact numbers, and nothing else is taken for one."""

import csv
from pathlib import Path

import numpy as np
import pytest

from esc50.errors import DataError
from esc50.results.predictions import Predictions, read_predictions, softmax, write_predictions

NAMES = ('dog, barking "loud"', "Wölfe\u2028鳥", "prob_rain", "", "line\nbreak")


def predictions_of(num_clips: int = 6, names: tuple[str, ...] = NAMES) -> Predictions:
    rng = np.random.default_rng(num_clips)
    probs = softmax(rng.normal(0.0, 8.0, (num_clips, len(names))))
    return Predictions(
        filenames=tuple(f"a b,{number}/ü.wav" for number in range(num_clips)),
        folds=tuple(number % 5 + 1 for number in range(num_clips)),
        targets=rng.integers(len(names), size=num_clips),
        probs=probs,
        class_names=names,
    )


@pytest.fixture
def path(tmp_path) -> Path:
    path = tmp_path / "run" / "predictions.csv"
    write_predictions(predictions_of(names=("dog", "rain")), path)
    return path


def test_the_columns_are_exactly_these(path):
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    written = predictions_of(names=("dog", "rain"))
    assert header == ["filename", "fold", "target", "predicted", "prob_dog", "prob_rain"]
    assert [row[0] for row in rows] == list(written.filenames)
    assert [[int(cell) for cell in row[1:4]] for row in rows] == [
        [fold, target, int(probs.argmax())]
        for fold, target, probs in zip(written.folds, written.targets, written.probs, strict=True)
    ]
    assert [float(row[4]) for row in rows] == written.probs[:, 0].tolist()


@pytest.mark.parametrize("names", [NAMES, ("only",), tuple(f"class {number}" for number in range(50))])
def test_what_is_written_reads_back_to_the_last_bit(tmp_path, names):
    written = predictions_of(40, names)
    write_predictions(written, tmp_path / "p.csv")
    read = read_predictions(tmp_path / "p.csv")
    assert read.class_names == names
    assert read.filenames == written.filenames
    assert read.folds == written.folds
    assert read.targets.dtype == np.int64
    assert np.array_equal(read.targets, written.targets)
    assert read.probs.dtype == np.float64
    assert read.probs.tobytes() == written.probs.tobytes()
    assert np.array_equal(read.predicted, written.probs.argmax(axis=1))


def test_the_same_predictions_are_the_same_bytes(path):
    again = path.with_name("again.csv")
    write_predictions(read_predictions(path), again)
    assert again.read_bytes() == path.read_bytes()


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(DataError, match=r"no predictions at .*nowhere\.csv; a run that was tested leaves predictions.csv"):
        read_predictions(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"\x89PNG\r\n\x1a\n\x00\x00",
        b"filename,fold,role\na.wav,1,train\n",
        b'"filename,fold',
        b"filename,fold,target,predicted\na.wav,1,0,0\n",
        b"filename,fold,target,predicted,dog\na.wav,1,0,0,1.0\n",
        b"fold,filename,target,predicted,prob_dog\n1,a.wav,0,0,1.0\n",
    ],
)
def test_another_file_is_refused_in_one_line(path, content):
    path.write_bytes(content)
    with pytest.raises(DataError, match="is not a predictions file") as refusal:
        read_predictions(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_cut_anywhere_is_refused_except_at_the_end_of_a_row(path):
    whole = path.read_bytes()
    ends = [number + 1 for number, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(len(whole)):
        if length in ends[1:]:
            continue  # a shorter file of whole rows is a predictions file of fewer clips
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            read_predictions(path)


@pytest.mark.parametrize(
    "row",
    [
        "a.wav,1,2,0,0.5,0.5",
        "a.wav,1,-1,0,0.5,0.5",
        "a.wav,one,0,0,0.5,0.5",
        "a.wav,1,0,0,half,0.5",
        "a.wav,1,0,0,0.5",
        "a.wav,1,0,0,0.5,0.5,0.5",
    ],
)
def test_a_row_that_makes_no_sense_is_refused(path, row):
    path.write_text(path.read_text(encoding="utf-8") + row + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"is not a whole predictions file .*; evaluate the run again"):
        read_predictions(path)


def test_softmax_is_the_normalised_exponential_in_float64():
    logits = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], dtype=np.float32)
    expected = np.exp(logits.astype(np.float64))
    np.testing.assert_allclose(softmax(logits), expected / expected.sum(axis=1, keepdims=True), rtol=1e-14)
    assert softmax(logits).dtype == np.float64


def test_softmax_keeps_what_float32_would_lose():
    probs = softmax(np.array([[0.0, -200.0], [1e4, -1e4], [-1e4, -1e4 - 1]], dtype=np.float32))
    assert probs[0, 1] == pytest.approx(np.exp(-200.0), rel=1e-12)  # below the smallest float32
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=1e-14)
