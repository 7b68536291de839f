"""What is answered follows from the probabilities alone, by hand."""

import numpy as np
import pytest

from esc50.inference.answer import UNKNOWN, Guess, Threshold, Window, answer, entropy

NAMES = ("cat", "dog", "owl")


def answered(*probs, threshold: Threshold | None = None, num_top: int = 3):
    """The answer to windows of one second that touch."""
    places = [(float(second), second + 1.0) for second in range(len(probs))]
    return answer(
        np.array(probs), places, NAMES, threshold=threshold or Threshold(), num_top=num_top, file="a.wav", calibrated=True
    )


@pytest.mark.parametrize("num_classes", [2, 3, 50])
def test_entropy_is_a_share_of_what_it_can_be(num_classes):
    assert entropy(np.full(num_classes, 1 / num_classes)) == pytest.approx(1)
    assert entropy(np.eye(num_classes)[1]) == 0


def test_entropy_by_hand():
    assert entropy(np.array([0.5, 0.5, 0, 0])) == pytest.approx(0.5)  # one bit of two
    assert entropy(np.array([0.5, 0.25, 0.25, 0])) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("threshold", "label"),
    [
        (Threshold(), "dog"),
        (Threshold(min_probability=0.5), "dog"),
        (Threshold(min_probability=0.51), UNKNOWN),
        (Threshold(min_probability=0.0, max_entropy=1.0), "dog"),
        (Threshold(max_entropy=0.95), "dog"),  # of 0.946
        (Threshold(max_entropy=0.94), UNKNOWN),
        (Threshold(min_probability=0.4, max_entropy=0.5), UNKNOWN),
        (Threshold(min_probability=0.6, max_entropy=1.0), UNKNOWN),
    ],
)
def test_an_unsure_or_vague_answer_is_unknown(threshold, label):
    assert threshold.label(np.array([0.25, 0.5, 0.25]), NAMES) == label


def test_a_short_recording_has_a_label_the_best_classes_and_no_windows():
    found = answered([0.2, 0.1, 0.7])
    assert (found.label, found.probability, found.file, found.seconds, found.calibrated) == ("owl", 0.7, "a.wav", 1.0, True)
    assert found.top == (
        Guess(label="owl", probability=0.7),
        Guess(label="cat", probability=0.2),
        Guess(label="dog", probability=0.1),
    )
    assert found.windows == found.timeline == ()
    assert found.probs.tolist() == [0.2, 0.1, 0.7]


def test_no_more_of_the_best_are_named_than_asked_for_or_there():
    assert [guess.label for guess in answered([0.2, 0.1, 0.7], num_top=2).top] == ["owl", "cat"]
    assert [guess.label for guess in answered([0.2, 0.1, 0.7], num_top=9).top] == ["owl", "cat", "dog"]
    assert [guess.label for guess in answered([0.4, 0.2, 0.4]).top] == ["cat", "owl", "dog"]  # a tie in the order of the names


def test_an_unknown_recording_still_has_its_best_classes():
    found = answered([0.2, 0.1, 0.7], threshold=Threshold(min_probability=0.8))
    assert (found.label, found.probability, found.top[0].label) == (UNKNOWN, 0.7, "owl")


def test_a_long_recording_has_the_mean_of_its_windows():
    found = answered([0.6, 0.4, 0.0], [0.0, 0.4, 0.6], [0.3, 0.4, 0.3])
    np.testing.assert_allclose(found.probs, [0.3, 0.4, 0.3])
    assert (found.label, found.seconds) == ("dog", 3.0)  # the best nowhere but in the last, and over all
    assert found.windows == (
        Window(start=0, end=1, label="cat", probability=0.6),
        Window(start=1, end=2, label="owl", probability=0.6),
        Window(start=2, end=3, label="dog", probability=0.4),
    )


def test_the_threshold_is_asked_of_each_window_and_of_the_whole():
    found = answered([0.9, 0.1, 0.0], [0.0, 0.1, 0.9], threshold=Threshold(min_probability=0.5))
    assert [window.label for window in found.windows] == ["cat", "owl"] and found.label == UNKNOWN


def test_the_time_line_puts_neighbours_of_one_label_together():
    cat, dog, vague = [0.8, 0.1, 0.1], [0.1, 0.6, 0.3], [0.4, 0.3, 0.3]
    found = answered(cat, [0.6, 0.4, 0.0], dog, vague, vague, cat, threshold=Threshold(min_probability=0.5))
    assert [(one.start, one.end, one.label) for one in found.timeline] == [
        (0, 2, "cat"),
        (2, 3, "dog"),
        (3, 5, UNKNOWN),
        (5, 6, "cat"),
    ]
    assert [one.probability for one in found.timeline] == pytest.approx([0.7, 0.6, 0.4, 0.8])
    assert len(found.windows) == 6


def test_what_lies_between_windows_is_not_claimed_by_the_time_line():
    cat = np.array([0.8, 0.1, 0.1])
    found = answer(
        np.stack([cat] * 4),
        [(0, 1), (1, 2), (4, 5), (4.5, 5.5)],
        NAMES,
        threshold=Threshold(),
        num_top=1,
        file=None,
        calibrated=True,
    )
    assert [(one.start, one.end) for one in found.timeline] == [(0, 2), (4, 5.5)]
