"""Calibration and ranking: known sets have known values, and all agree with scikit-learn where it has them."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

from esc50.results.predictions import softmax
from esc50.results.reliability import TEMPERATURES, calibration, fit_temperature, macro, rank, rankings


def two_classes(confidences: list[float], right: list[bool]) -> tuple[np.ndarray, np.ndarray]:
    """Clips for which class 0 is predicted with such a probability, above one half, rightly or not."""
    return np.array([[p, 1 - p] for p in confidences]), np.where(right, 0, 1)


def random_case(num_clips: int, num_classes: int, *, absent: tuple[int, ...] = (), decimals: int = 12):
    """Probabilities that favour the truth a little, with many ties where there are few decimals."""
    rng = np.random.default_rng(num_clips + num_classes)
    targets = rng.choice([target for target in range(num_classes) if target not in absent], size=num_clips)
    probs = softmax(rng.normal(size=(num_clips, num_classes)) + np.eye(num_classes)[targets])
    return probs.round(decimals), targets


# ------------------------------------------------------------------ calibration


def test_a_perfectly_calibrated_set_has_no_error():
    probs, targets = two_classes([0.8] * 5 + [0.6] * 5, [True] * 4 + [False] + [True] * 3 + [False] * 2)
    assert calibration(probs, targets, num_bins=15).error == pytest.approx(0, abs=1e-15)


def test_the_error_of_a_known_set():
    """Four clips at 0.9, half of them right: 0.4 too sure. One at 0.7 that is right: 0.3 too modest."""
    probs, targets = two_classes([0.9] * 4 + [0.7], [True, True, False, False, True])
    found = calibration(probs, targets, num_bins=10)
    assert found.error == pytest.approx((4 * 0.4 + 1 * 0.3) / 5)
    assert found.counts.tolist() == [0, 0, 0, 0, 0, 0, 1, 0, 4, 0]
    assert found.confidence[[6, 8]] == pytest.approx([0.7, 0.9])
    assert found.accuracy[[6, 8]].tolist() == [1.0, 0.5]


def test_errors_within_a_bin_cancel_and_more_bins_find_them():
    probs, targets = two_classes([0.55, 0.95], [True, False])
    assert calibration(probs, targets, num_bins=1).error == pytest.approx(0.25)
    assert calibration(probs, targets, num_bins=10).error == pytest.approx((0.45 + 0.95) / 2)


def test_a_bin_holds_its_upper_edge():
    probs, targets = two_classes([0.75, 0.7500001, 1.0], [True] * 3)
    assert calibration(probs, targets, num_bins=4).counts.tolist() == [0, 0, 1, 2]


def test_empty_bins_are_zero_and_not_nan():
    probs, targets = two_classes([1.0], [True])
    found = calibration(probs, targets, num_bins=15)
    assert found.counts.tolist() == [0] * 14 + [1]
    assert found.accuracy.tolist() == found.confidence.tolist() == [0.0] * 14 + [1.0]
    assert found.error == 0


def test_the_error_agrees_with_its_definition_written_out():
    probs, targets = random_case(300, 10)
    top, right = probs.max(axis=1), probs.argmax(axis=1) == targets
    expected = 0.0
    for low in np.arange(15) / 15:
        inside = (top > low) & (top <= low + 1 / 15)
        if inside.any():
            expected += inside.mean() * abs(right[inside].mean() - top[inside].mean())
    assert calibration(probs, targets, num_bins=15).error == pytest.approx(expected)
    assert expected > 0.01


# ------------------------------------------------------------------ ranking


@pytest.mark.parametrize("decimals", [12, 1])
@pytest.mark.parametrize(("num_clips", "num_classes", "absent"), [(400, 50, ()), (80, 10, (0, 7)), (30, 2, ())])
def test_curves_and_areas_agree_with_scikit_learn(num_clips, num_classes, absent, decimals):
    probs, targets = random_case(num_clips, num_classes, absent=absent, decimals=decimals)
    found = rankings(probs, targets)
    assert [ranking.target for ranking in found] == np.unique(targets).tolist()
    for ranking in found:
        own, of_class = targets == ranking.target, probs[:, ranking.target]
        precision, recall, _ = precision_recall_curve(own, of_class)
        assert ranking.num_clips == own.sum()
        np.testing.assert_allclose(ranking.precision, precision[-2::-1])  # the reference runs back and ends in (1, 0)
        np.testing.assert_allclose(ranking.recall, recall[-2::-1])
        assert ranking.average_precision == pytest.approx(average_precision_score(own, of_class))
        assert ranking.auc == pytest.approx(roc_auc_score(own, of_class))


def test_the_macro_area_is_that_of_scikit_learn():
    probs, targets = random_case(200, 6)
    found = macro(ranking.auc for ranking in rankings(probs, targets))
    assert found == pytest.approx(roc_auc_score(targets, probs, multi_class="ovr", average="macro"))
    assert 0.6 < found < 0.95


def test_a_ranking_by_hand():
    """Own, other, own, other: precision 1, 1/2, 2/3, 1/2; three of four pairs in the right order."""
    ranking = rank(np.array([0.2, 0.9, 0.5, 0.7]), np.array([False, True, True, False]), target=3)
    assert ranking.precision.tolist() == [1, 1 / 2, 2 / 3, 1 / 2]
    assert ranking.recall.tolist() == [0.5, 0.5, 1, 1]
    assert ranking.average_precision == pytest.approx((1 + 2 / 3) / 2)
    assert ranking.auc == 0.75


def test_precision_at_a_recall_is_that_of_the_highest_threshold_which_reaches_it():
    ranking = rank(np.array([0.2, 0.9, 0.5, 0.7]), np.array([False, True, True, False]), target=0)
    assert ranking.precision_at(np.array([0.1, 0.5, 0.51, 1])).tolist() == [1, 1, 2 / 3, 2 / 3]


def test_a_probability_that_says_nothing_has_half_the_area():
    ranking = rank(np.full(10, 0.1), np.arange(10) < 3, target=0)
    assert ranking.auc == 0.5
    assert ranking.average_precision == pytest.approx(0.3)


def test_a_perfect_ranking_has_the_whole_area_and_a_reversed_one_none():
    own = np.array([True, True, False, False])
    assert [rank(np.array(of_class), own, target=0).auc for of_class in ([0.9, 0.8, 0.1, 0.2], [0.1, 0.2, 0.9, 0.8])] == [1, 0]


def test_where_only_one_class_occurs_there_is_no_area_to_tell_it_from_others():
    (ranking,) = rankings(np.array([[0.4, 0.6], [0.7, 0.3]]), np.array([1, 1]))
    assert ranking.auc is None
    assert ranking.average_precision == 1
    assert macro([ranking.auc]) is None


def test_macro_leaves_out_what_is_not_defined():
    assert macro([0.5, None, 1.0]) == 0.75


def scaled(probs: np.ndarray, temperature: float) -> np.ndarray:
    powers = probs ** (1 / temperature)
    return powers / powers.sum(axis=1, keepdims=True)


def test_the_temperature_that_made_probabilities_wrong_is_found():
    rng = np.random.default_rng(0)
    true = scaled(rng.dirichlet(np.ones(5), 20_000), 1.0)
    targets = np.array([rng.choice(5, p=one) for one in true])
    for temperature in (0.5, 1.0, 3.0):  # probabilities too sure by so much
        assert fit_temperature(scaled(true, 1 / temperature), targets) == pytest.approx(temperature, rel=0.05)


def test_a_few_clips_that_are_all_right_are_no_reason_to_be_sure_and_many_are():
    probs, targets = np.array([[0.9, 0.1], [0.2, 0.8], [0.85, 0.15]]), np.array([0, 1, 0])
    own = [
        scaled(np.tile(probs, (times, 1)), fit_temperature(np.tile(probs, (times, 1)), np.tile(targets, times)))[
            np.arange(3), targets
        ].mean()
        for times in (1, 100)
    ]
    assert own[0] == pytest.approx(1 - 1 / 5, abs=0.1) and own[1] > 0.99


def test_clips_that_are_all_wrong_ask_for_no_temperature_beyond_the_bounds():
    assert 10 < fit_temperature(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([1, 0])) <= TEMPERATURES[1]


def test_a_temperature_changes_no_order_of_classes():
    probs, targets = random_case(300, 10)
    cooled = scaled(probs, fit_temperature(probs, targets))
    assert np.abs(cooled - probs).max() > 0.01
    np.testing.assert_array_equal(cooled.argsort(axis=1), probs.argsort(axis=1))
