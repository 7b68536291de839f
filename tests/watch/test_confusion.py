"""The confusion panel shows the predictions file: its matrix, its pairs, its classes."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torch.utils.tensorboard import SummaryWriter

from esc50.drawing import shortened
from esc50.results.metrics import confusion_matrix
from esc50.results.predictions import Predictions, read_predictions
from esc50.runs import train as run
from esc50.watch.confusion import (
    MAX_BARS,
    ClassesPicture,
    Confusion,
    MatrixPicture,
    Pair,
    most_confused,
    pairs_text,
    shares_of,
)
from esc50.watch.evaluation import Evaluation

FILE = """filename,fold,target,predicted,prob_cat,prob_dog,prob_owl,prob_pig
a.wav,1,0,0,0.7,0.1,0.1,0.1
b.wav,1,0,1,0.2,0.6,0.1,0.1
c.wav,1,0,1,0.2,0.5,0.2,0.1
d.wav,1,0,3,0.2,0.1,0.2,0.5
e.wav,1,1,1,0.1,0.8,0.1,0.0
f.wav,1,1,0,0.6,0.4,0.0,0.0
g.wav,1,3,3,0.1,0.1,0.1,0.7
"""
NAMES = ("cat", "dog", "owl", "pig")
MATRIX = np.array([[1, 2, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]])  # no clip is an owl
SHARES = [[0.25, 0.5, 0, 0.25], [0.5, 0.5, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
PANEL = ("watch=none", "+watch/panels@watch.confusion=confusion")


@pytest.fixture
def predictions(tmp_path) -> Predictions:
    """Seven clips of cat, dog and pig; the class owl occurs in no clip."""
    (tmp_path / "predictions.csv").write_text(FILE, encoding="utf-8")
    return read_predictions(tmp_path / "predictions.csv")


def write(folder: Path, evaluations: list[tuple[int, Predictions]]) -> None:
    """The events of one panel that is shown evaluations, as (step, predictions)."""
    panel = Confusion(every_n_epochs=1, num_pairs=2)
    with SummaryWriter(folder) as writer:
        for step, predictions in evaluations:
            panel.write(writer, Evaluation(role="val", step=step, predictions=predictions, data=None, task=None))


def image_of(content, tag: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content.Images(tag)[-1].encoded_image_string)))


def color_at(picture: MatrixPicture, shown: np.ndarray, truth: int, predicted: int) -> list[int]:
    """Of a cell, beside the middle, where a number may stand."""
    x, y = picture.axes.transData.transform((predicted + 0.35, truth + 0.35))
    return shown[len(shown) - 1 - round(y), round(x)].tolist()


def random_matrix(num_classes: int) -> np.ndarray:
    return np.random.default_rng(0).poisson(0.3, (num_classes, num_classes)) + 5 * np.eye(num_classes, dtype=int)


# ------------------------------------------------------------------ numbers


def test_rows_are_shares_of_the_true_class_and_an_absent_class_keeps_its_zeros():
    assert shares_of(MATRIX).tolist() == SHARES


def test_pairs_are_ordered_by_clips_then_by_share():
    pairs = most_confused(MATRIX, num_pairs=10)
    assert pairs == [
        Pair(truth=0, predicted=1, clips=2, share=0.5),
        Pair(truth=1, predicted=0, clips=1, share=0.5),
        Pair(truth=0, predicted=3, clips=1, share=0.25),
    ]
    assert most_confused(MATRIX, num_pairs=2) == pairs[:2]


def test_pairs_name_who_is_taken_for_whom():
    lines = pairs_text(most_confused(MATRIX, num_pairs=1), NAMES).splitlines()
    assert lines[0] == "| true class | taken for | clips | share of the true class |"
    assert lines[2:] == ["| cat | dog | 2 | 50% |"]


def test_where_nothing_is_confused_the_table_says_so():
    assert pairs_text(most_confused(np.diag([3, 0, 2]), num_pairs=5), NAMES[:3]) == "No clip is confused."


@pytest.mark.parametrize(("name", "short"), [("x" * 24, "x" * 24), ("x" * 25, "x" * 23 + "…")])
def test_long_names_are_cut(name, short):
    assert shortened(name, most=24) == short


# ------------------------------------------------------------------ pictures


def test_every_cell_of_the_picture_has_the_colour_of_its_share():
    picture = MatrixPicture(NAMES, title="Confusion (val)")
    shown = picture.pixels(MATRIX)
    for (truth, predicted), share in np.ndenumerate(np.array(SHARES)):
        expected = picture.image.cmap(float(picture.image.norm(share)), bytes=True)[:3]
        assert np.abs(np.subtract(color_at(picture, shown, truth, predicted), expected, dtype=int)).max() <= 1
    assert [label.get_text() for label in picture.axes.get_yticklabels()] == list(NAMES)
    assert [label.get_text() for label in picture.axes.get_xticklabels()] == list(NAMES)


def test_a_second_matrix_leaves_nothing_of_the_first():
    picture = MatrixPicture(NAMES, title="Confusion (val)")
    first = picture.pixels(MATRIX)
    second = picture.pixels(np.diag([4, 2, 0, 1]))
    assert not np.array_equal(first, second)
    assert np.array_equal(second, MatrixPicture(NAMES, title="Confusion (val)").pixels(np.diag([4, 2, 0, 1])))
    assert np.array_equal(first, picture.pixels(MATRIX))


@pytest.mark.parametrize(("num_classes", "longest_side"), [(2, 700), (50, 1200), (150, 2200)])
def test_pictures_keep_a_size_that_can_be_looked_at(num_classes, longest_side):
    names, matrix = tuple(f"class_{i}" for i in range(num_classes)), random_matrix(num_classes)
    picture = MatrixPicture(names, title="Confusion (val)")
    shown = picture.pixels(matrix)
    labels = [label.get_text() for label in picture.axes.get_yticklabels()]
    assert shown.dtype == np.uint8
    assert max(shown.shape) <= longest_side
    assert labels == list(names[:: 2 if num_classes > 100 else 1])
    cell = np.diff(picture.axes.transData.transform([(0, 0), (1, 0)])[:, 0])[0]
    assert cell * (2 if num_classes > 100 else 1) >= 14  # pixels between the names, which are ten high


def test_bars_show_the_share_found_the_worst_on_top_and_none_of_an_absent_class():
    picture = ClassesPicture(NAMES, MATRIX.sum(axis=1), title="Accuracy by class (val)")
    picture.pixels(MATRIX)
    assert [bar.get_width() for bar in picture.bars] == [0.25, 0.5, 1.0]
    assert [text.get_text() for text in picture.texts] == ["cat  1 of 4", "dog  1 of 2", "pig  1 of 1"]
    assert picture.axes.get_title(loc="left") == "Accuracy by class (val): 1 absent"


def test_bars_of_another_epoch_are_sorted_anew():
    picture = ClassesPicture(NAMES, MATRIX.sum(axis=1), title="Accuracy by class (val)")
    first = picture.pixels(MATRIX)
    later = np.array([[4, 0, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]])
    assert not np.array_equal(first, picture.pixels(later))
    assert [text.get_text() for text in picture.texts] == ["dog  0 of 2", "pig  0 of 1", "cat  4 of 4"]
    assert np.array_equal(first, picture.pixels(MATRIX))


def test_of_very_many_classes_the_worst_have_bars():
    matrix = random_matrix(MAX_BARS + 20)
    picture = ClassesPicture(tuple(f"c{i}" for i in range(len(matrix))), matrix.sum(axis=1), title="Accuracy by class (val)")
    picture.pixels(matrix)
    worst = np.sort(np.diag(shares_of(matrix)))[:MAX_BARS]
    assert [bar.get_width() for bar in picture.bars] == worst.tolist()
    assert picture.axes.get_title(loc="left").endswith(f": worst {MAX_BARS} of {MAX_BARS + 20}")


# ------------------------------------------------------------------ events


def test_events_hold_the_pictures_and_the_table_of_every_epoch(predictions, events, tmp_path):
    write(tmp_path / "tensorboard", [(9, predictions), (19, predictions)])
    found = events(tmp_path / "tensorboard")
    assert sorted(found.tags["images"]) == ["confusion/classes_val", "confusion/matrix_val"]
    assert found.tags["tensors"] == ["confusion/pairs_val/text_summary"]
    text = found.content.Tensors("confusion/pairs_val/text_summary")
    assert [event.step for event in text] == [9, 19]
    expected = pairs_text(most_confused(MATRIX, num_pairs=2), NAMES)
    assert text[0].tensor_proto.string_val[0].decode() == expected
    assert [event.step for event in found.content.Images("confusion/matrix_val")] == [9, 19]
    assert np.array_equal(
        image_of(found.content, "confusion/matrix_val"), MatrixPicture(NAMES, title="Confusion (val)").pixels(MATRIX)
    )
    assert np.array_equal(
        image_of(found.content, "confusion/classes_val"),
        ClassesPicture(NAMES, MATRIX.sum(axis=1), title="Accuracy by class (val)").pixels(MATRIX),
    )


def test_names_may_hold_any_signs(predictions, events, tmp_path):
    strange = Predictions(
        filenames=predictions.filenames,
        folds=predictions.folds,
        targets=predictions.targets,
        probs=predictions.probs,
        class_names=("$cat$", "a|b", "{x}", "_pig_^2"),
    )
    write(tmp_path / "tensorboard", [(0, strange)])
    assert len(image_of(events(tmp_path / "tensorboard").content, "confusion/matrix_val"))


def test_a_run_shows_each_validation_and_its_test_as_the_predictions_file_has_it(compose, tiny, tmp_path, events):
    run.train(compose(*PANEL, *tiny), tmp_path)
    found = events(tmp_path / run.TENSORBOARD)
    predictions = read_predictions(tmp_path / "predictions.csv")
    matrix = confusion_matrix(predictions.targets, predictions.predicted, num_classes=3)
    assert np.array_equal(
        image_of(found.content, "confusion/matrix_test"),
        MatrixPicture(predictions.class_names, title="Confusion (test)").pixels(matrix),
    )
    steps = {tag: [event.step for event in found.content.Images(tag)] for tag in found.tags["images"]}
    assert steps == {
        "confusion/matrix_val": [2, 5],
        "confusion/classes_val": [2, 5],
        "confusion/matrix_test": [6],
        "confusion/classes_test": [6],
    }
