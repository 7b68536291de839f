"""The calibration panel shows what was computed: bins, error, and right apart from wrong."""

import io
import logging

import numpy as np
import pytest
from PIL import Image
from torch.utils.tensorboard import SummaryWriter

from esc50.results.predictions import Predictions
from esc50.results.reliability import calibration
from esc50.watch.calibration import CalibrationPanel, draw_probabilities, draw_reliability
from esc50.watch.evaluation import Evaluation

# Four clips at 0.9, half of them right, and one at 0.7 that is right: expected calibration error (4 * 0.4 + 0.3) / 5.
PROBS = np.array([[0.9, 0.1]] * 4 + [[0.7, 0.3]])
TARGETS = np.array([0, 0, 1, 1, 0])
ERROR = 0.38


def predictions_with(probs: np.ndarray, targets: np.ndarray) -> Predictions:
    return Predictions(
        filenames=("",) * len(targets), folds=(1,) * len(targets), targets=targets, probs=probs, class_names=("cat", "dog")
    )


def test_the_diagram_shows_accuracy_and_confidence_of_the_filled_bins_and_all_counts():
    figure = draw_reliability(calibration(PROBS, TARGETS, num_bins=10), role="val")
    upper, lower = figure.axes
    bars = {round(bar.get_x(), 6): bar.get_height() for bar in upper.patches}
    assert bars == {0.6: 1.0, 0.8: 0.5}
    assert upper.lines[0].get_xdata() == pytest.approx([0.7, 0.9])
    assert upper.lines[0].get_ydata() == pytest.approx([0.7, 0.9])
    assert [bar.get_height() for bar in lower.patches] == [0, 0, 0, 0, 0, 0, 1, 0, 4, 0]
    assert upper.get_title(loc="left") == "Reliability (val): expected calibration error 0.380"


def test_right_and_wrong_clips_are_counted_apart():
    right, wrong = draw_probabilities(predictions_with(PROBS, TARGETS), role="val").axes
    assert right.patches[0].get_data().values.sum() == 3
    assert wrong.patches[0].get_data().values.tolist() == [0] * 18 + [2, 0]
    assert right.get_title(loc="left") == "Probability of 3 right clips (val), 0.83 on average"
    assert wrong.get_title(loc="left") == "Probability of 2 wrong clips (val), 0.90 on average"


def test_where_every_clip_is_right_the_wrong_ones_are_none():
    _, wrong = draw_probabilities(predictions_with(PROBS, np.zeros(5, dtype=int)), role="val").axes
    assert wrong.patches[0].get_data().values.sum() == 0
    assert wrong.get_title(loc="left") == "Probability of 0 wrong clips (val)"


def test_events_hold_the_error_and_both_pictures(events, tmp_path):
    panel = CalibrationPanel(every_n_epochs=1, num_bins=15)
    with SummaryWriter(tmp_path) as writer:
        for step, targets in ((9, TARGETS), (19, np.zeros(5, dtype=int))):
            panel.write(
                writer, Evaluation(role="val", step=step, predictions=predictions_with(PROBS, targets), data=None, task=None)
            )
    found = events(tmp_path)
    all_right = (4 * 0.1 + 0.3) / 5
    assert found.scalars == {"calibration/ece_val": [(9, pytest.approx(ERROR)), (19, pytest.approx(all_right))]}
    sizes = {}
    for tag in found.tags["images"]:
        first, second = (np.asarray(Image.open(io.BytesIO(event.encoded_image_string))) for event in found.content.Images(tag))
        assert not np.array_equal(first, second)
        assert 0.02 < (first < 250).any(axis=2).mean() < 0.6
        sizes[tag] = first.shape
    assert sizes == {"calibration/reliability_val": (600, 600, 3), "calibration/probabilities_val": (450, 600, 3)}


def test_probabilities_that_are_not_finite_cost_a_warning_and_not_the_run(events, tmp_path, caplog):
    predictions = predictions_with(np.full_like(PROBS, np.nan), TARGETS)
    with SummaryWriter(tmp_path) as writer, caplog.at_level(logging.WARNING):
        CalibrationPanel(every_n_epochs=1, num_bins=15).write(
            writer, Evaluation(role="val", step=4, predictions=predictions, data=None, task=None)
        )
    assert "no calibration of val at step 4" in caplog.text
    assert not events(tmp_path).scalars
