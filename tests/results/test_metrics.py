"""Scores agree with scikit-learn where it has them, and hold where classes are few or absent."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, log_loss, top_k_accuracy_score
from sklearn.metrics import confusion_matrix as reference_matrix

from esc50.results.metrics import confusion_matrix, macro_f1, score, scores
from esc50.results.predictions import Predictions, softmax


def random_case(num_clips: int, num_classes: int, *, absent: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that favour the truth a little, and targets without the absent classes."""
    rng = np.random.default_rng(num_clips + num_classes)
    present = [target for target in range(num_classes) if target not in absent]
    targets = rng.choice(present, size=num_clips)
    return softmax(rng.normal(size=(num_clips, num_classes)) + 1.5 * np.eye(num_classes)[targets]), targets


@pytest.mark.parametrize(("num_clips", "num_classes"), [(400, 50), (80, 10), (30, 6)])
def test_scores_agree_with_scikit_learn(num_clips, num_classes):
    probs, targets = random_case(num_clips, num_classes)
    found, predicted, labels = scores(probs, targets), probs.argmax(axis=1), range(num_classes)
    assert found["accuracy"] == accuracy_score(targets, predicted)
    assert found["loss"] == pytest.approx(log_loss(targets, probs, labels=labels), rel=1e-12)
    assert found["top5"] == top_k_accuracy_score(targets, probs, k=5, labels=labels)
    assert found["macro_f1"] == pytest.approx(f1_score(targets, predicted, average="macro", labels=np.unique(targets)))
    assert 0.1 < found["accuracy"] < found["top5"]


def test_scores_of_predictions_are_those_of_their_arrays():
    probs, targets = random_case(20, 6)
    predictions = Predictions(filenames=("",) * 20, folds=(1,) * 20, targets=targets, probs=probs, class_names=tuple("abcdef"))
    assert score(predictions) == scores(probs, targets)
    assert all(type(value) is float for value in scores(probs, targets).values())


@pytest.mark.parametrize("num_classes", [1, 2, 3, 4, 5])
def test_with_five_classes_or_fewer_the_truth_is_always_among_the_best_five(num_classes):
    probs, targets = random_case(30, num_classes)
    assert scores(probs, targets)["top5"] == 1.0


def test_top5_counts_the_fifth_and_not_the_sixth():
    probs = np.array([[0.3, 0.25, 0.2, 0.12, 0.08, 0.05]] * 6)
    assert [scores(probs[:1], np.array([target]))["top5"] for target in range(6)] == [1, 1, 1, 1, 1, 0]


def test_the_loss_of_an_impossible_truth_is_large_but_finite():
    loss = scores(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1]))["loss"]
    assert 100 < loss < np.inf


def test_the_confusion_matrix_has_the_truth_in_rows():
    matrix = confusion_matrix(np.array([0, 0, 0, 1, 2]), np.array([0, 1, 1, 1, 0]), num_classes=3)
    assert matrix.tolist() == [[1, 2, 0], [0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("absent", [(2,), (0, 9), (1, 3, 5)])
def test_a_class_absent_from_the_fold_keeps_its_row_of_zeros(absent):
    probs, targets = random_case(60, 10, absent=absent)
    predicted = probs.argmax(axis=1)
    matrix = confusion_matrix(targets, predicted, num_classes=10)
    assert matrix.shape == (10, 10)
    assert matrix.sum() == 60
    assert not matrix[list(absent)].any()
    assert np.array_equal(matrix, reference_matrix(targets, predicted, labels=range(10)))


def test_macro_f1_is_over_the_classes_that_occur():
    """An absent class that was guessed costs the class it was guessed for, and does not enter as a zero of its own."""
    targets, predicted = np.array([0, 0, 1, 1]), np.array([0, 2, 1, 1])
    matrix = confusion_matrix(targets, predicted, num_classes=4)
    assert macro_f1(matrix) == pytest.approx((2 / 3 + 1) / 2)
    assert macro_f1(matrix) == pytest.approx(f1_score(targets, predicted, average="macro", labels=[0, 1]))


def test_a_class_that_is_never_guessed_has_an_f1_of_zero():
    assert macro_f1(confusion_matrix(np.array([0, 1]), np.array([0, 0]), num_classes=2)) == pytest.approx(1 / 3)
