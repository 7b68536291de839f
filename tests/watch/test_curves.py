"""Precision, recall and areas as they are shown: the worst classes first, absent ones without scores."""

import io
import logging

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import average_precision_score, roc_auc_score
from torch.utils.tensorboard import SummaryWriter

from esc50.results.predictions import Predictions, softmax
from esc50.results.reliability import rankings
from esc50.watch.curves import RECALLS, Curves, classes_text, draw_curves, macro_scores, worst_first
from esc50.watch.evaluation import Evaluation

NAMES = ("cat", "dog", "owl")
# No clip is a dog. The three cats are ranked above both owls; one owl is ranked below a cat.
PROBS = np.array([[0.8, 0.1, 0.1], [0.7, 0.1, 0.2], [0.6, 0.0, 0.4], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
TARGETS = np.array([0, 0, 0, 2, 2])


def predictions_with(probs: np.ndarray, targets: np.ndarray, names: tuple[str, ...]) -> Predictions:
    return Predictions(filenames=("",) * len(targets), folds=(1,) * len(targets), targets=targets, probs=probs, class_names=names)


def many(num_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Eight clips a class, some classes easier than others."""
    rng = np.random.default_rng(0)
    targets = np.repeat(np.arange(num_classes), 8)
    ease = rng.uniform(0, 5, size=num_classes)
    return softmax(rng.normal(size=(len(targets), num_classes)) + np.eye(num_classes)[targets] * ease), targets


def test_the_table_has_the_worst_first_and_absent_classes_last_without_scores():
    lines = classes_text(rankings(PROBS, TARGETS), NAMES).splitlines()
    assert lines[0] == "| class | clips | average precision | AUC |"
    assert lines[2:] == ["| owl | 2 | 0.833 | 0.833 |", "| cat | 3 | 1.000 | 1.000 |", "| dog | 0 |  |  |"]


def test_macro_scores_are_means_over_the_classes_that_occur():
    assert macro_scores(rankings(PROBS, TARGETS)) == pytest.approx({"average_precision_macro": 11 / 12, "auc_macro": 11 / 12})


def test_with_one_class_only_there_is_no_auc():
    assert macro_scores(rankings(PROBS[:3], TARGETS[:3])) == {"average_precision_macro": 1.0}
    assert classes_text(rankings(PROBS[:3], TARGETS[:3]), NAMES).splitlines()[2] == "| cat | 3 | 1.000 |  |"


@pytest.mark.parametrize("num_named", [0, 3])
def test_the_worst_are_drawn_with_their_names_the_others_pale_and_the_mean_in_black(num_named):
    found = rankings(*many(50))
    names = tuple(f"class_{target}" for target in range(50))
    figure = draw_curves(found, names, title="Precision and recall (val)", num_named=num_named)
    axes = figure.axes[0]
    worst = [f"{ranking.average_precision:.2f}  {names[ranking.target]}" for ranking in worst_first(found)[:num_named]]
    assert [line.get_label() for line in axes.lines[:-1]] == worst
    assert len(axes.collections[0].get_segments()) == 50 - num_named
    mean = np.mean([ranking.precision_at(RECALLS) for ranking in found], axis=0)
    np.testing.assert_allclose(axes.lines[-1].get_ydata(), mean)
    assert axes.lines[-1].get_color() == "black"
    assert macro_scores(found)["average_precision_macro"] == pytest.approx(mean.mean(), abs=1e-3)  # the area below


def test_a_class_that_is_never_mistaken_has_a_flat_curve():
    figure = draw_curves(rankings(PROBS, TARGETS), NAMES, title="", num_named=2)
    owl, cat, _ = figure.axes[0].lines
    assert set(cat.get_ydata()) == {1.0}
    assert set(owl.get_ydata()) == {1.0, 2 / 3}


def test_events_hold_scalars_table_and_picture(events, tmp_path):
    probs, targets = many(50)
    predictions = predictions_with(probs, targets, tuple(f"${target}$ of {{all}}" for target in range(50)))
    panel = Curves(every_n_epochs=5, num_named=5)
    with SummaryWriter(tmp_path) as writer:
        for step in (9, 19):
            panel.write(writer, Evaluation(role="test", step=step, predictions=predictions, data=None, task=None))
    found = events(tmp_path)
    own = np.eye(50)[targets]
    expected = {
        "curves/auc_macro_test": roc_auc_score(targets, probs, multi_class="ovr", average="macro"),
        "curves/average_precision_macro_test": average_precision_score(own, probs, average="macro"),
    }
    assert found.scalars == {tag: [(9, pytest.approx(value)), (19, pytest.approx(value))] for tag, value in expected.items()}
    assert found.tags["tensors"] == ["curves/classes_test/text_summary"]
    assert found.tags["images"] == ["curves/precision_recall_test"]
    shown = np.asarray(Image.open(io.BytesIO(found.content.Images("curves/precision_recall_test")[0].encoded_image_string)))
    assert shown.shape == (500, 850, 3)
    assert 0.02 < (shown < 250).any(axis=2).mean() < 0.5


def test_probabilities_that_are_not_finite_cost_a_warning_and_not_the_run(events, tmp_path, caplog):
    predictions = predictions_with(np.where(PROBS > 0.75, np.nan, PROBS), TARGETS, NAMES)
    with SummaryWriter(tmp_path) as writer, caplog.at_level(logging.WARNING):
        Curves(every_n_epochs=1, num_named=1).write(
            writer, Evaluation(role="val", step=4, predictions=predictions, data=None, task=None)
        )
    assert "no curves of val at step 4" in caplog.text
    assert not events(tmp_path).scalars
