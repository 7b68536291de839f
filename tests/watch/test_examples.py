"""The clips shown are the best and the worst, their sounds are theirs, and what was often wrong is counted over the run."""

import csv
import io
import json
import logging
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from PIL import Image
from torch.utils.tensorboard import SummaryWriter

from esc50.assembly.data import build_clips, build_recipe, build_split
from esc50.data.clip import Clip, class_names
from esc50.drawing import pixels
from esc50.features.picture import picture_of
from esc50.features.recipe import Recipe
from esc50.results.metrics import score
from esc50.results.predictions import Predictions, predictions_of, read_predictions
from esc50.runs import train as run
from esc50.training.checkpoint_files import load_checkpoint
from esc50.watch import examples
from esc50.watch.evaluation import Evaluation
from esc50.watch.examples import Examples, describe, draw_examples, worst_and_best
from esc50.watch.often_wrong import WrongCounts, clip_losses

RATE = 8000
RECIPE = Recipe(kind="waveform", sample_rate=RATE, seconds=0.5)
PANEL = ("watch=none", "+watch/panels@watch.examples=examples", "watch.examples.every_n_epochs=2", "watch.examples.num_clips=2")


def noise_clips(folder: Path, number: int, names: tuple[str, ...]) -> tuple[Clip, ...]:
    """Half a second of noise each, the classes in turn."""
    clips = []
    for i in range(number):
        path = folder / f"{i}.wav"
        soundfile.write(path, np.random.default_rng(i).uniform(-0.5, 0.5, RATE // 2), RATE)
        clips.append(
            Clip(filename=path.name, path=path, target=i % len(names), category=names[i % len(names)], fold=1, source=path.stem)
        )
    return tuple(clips)


def evaluation_of(clips: tuple[Clip, ...], probs: np.ndarray, names: tuple[str, ...], *, step: int = 7) -> Evaluation:
    predictions = predictions_of(clips, np.array([clip.target for clip in clips]), probs, names=names)
    data = SimpleNamespace(split=SimpleNamespace(roles=lambda: {"val": clips}))
    task = SimpleNamespace(front_end=SimpleNamespace(recipe=RECIPE))
    return Evaluation(role="val", step=step, predictions=predictions, data=data, task=task)


@pytest.fixture
def evaluation(tmp_path) -> Evaluation:
    """Four clips of cat, dog and owl: the third is the worst, the first the best."""
    names = ("cat", "dog", "owl")
    probs = np.array([[0.9, 0.05, 0.05], [0.3, 0.4, 0.3], [0.9, 0.08, 0.02], [0.25, 0.7, 0.05]])
    return evaluation_of(noise_clips(tmp_path, 4, names), probs, names)


@pytest.fixture
def shown(evaluation, tmp_path, events):
    """The events of that evaluation, two clips best and worst."""
    with SummaryWriter(tmp_path / "events") as writer:
        Examples(every_n_epochs=1, num_clips=2).write(writer, evaluation)
    return events(tmp_path / "events").content


def test_the_loss_of_a_clip_is_the_cross_entropy_of_its_truth(evaluation):
    losses = clip_losses(evaluation.predictions)
    np.testing.assert_allclose(losses, -np.log([0.9, 0.4, 0.02, 0.25]))
    assert losses.mean() == pytest.approx(score(evaluation.predictions)["loss"])


def test_the_worst_clip_is_first_of_the_worst_and_the_best_of_the_best(evaluation):
    assert worst_and_best(clip_losses(evaluation.predictions), 3) == ([2, 3, 1], [0, 1, 3])


def test_more_clips_than_there_are_are_all(evaluation):
    worst, best = worst_and_best(clip_losses(evaluation.predictions), 9)
    assert worst == best[::-1] == [2, 3, 1, 0]


def test_a_title_names_truth_prediction_probabilities_and_file(evaluation):
    assert describe(evaluation.predictions, 2, rank=1) == "1. is owl: 2.0 %\npredicted cat: 90.0 %\n2.wav"


def test_every_picture_shows_its_own_clip(evaluation):
    pictures = [picture_of(RECIPE.read(evaluation.clips[i].path), RECIPE) for i in (2, 0)]
    panels = draw_examples(evaluation.predictions, [2, 0], pictures, name="worst").axes
    for panel, picture in zip(panels, pictures, strict=False):
        np.testing.assert_array_equal(panel.images[0].get_array(), picture.decibels)
    assert [panel.get_title(loc="left").splitlines()[2] for panel in panels[:2]] == ["2.wav", "0.wav"]


def test_the_sounds_are_those_of_the_clips_in_the_order_of_the_picture(shown, evaluation):
    expected = {
        "examples/sounds_worst_val/1": 2,
        "examples/sounds_worst_val/2": 3,
        "examples/sounds_best_val/1": 0,
        "examples/sounds_best_val/2": 1,
    }
    assert set(shown.Tags()["audio"]) == set(expected)
    for tag, i in expected.items():
        (event,) = shown.Audio(tag)
        sound, rate = soundfile.read(io.BytesIO(event.encoded_audio_string), dtype="float32")
        assert (event.step, rate) == (7, RATE)
        np.testing.assert_allclose(sound, RECIPE.read(evaluation.clips[i].path), atol=2 / 32768)


def test_the_pictures_have_the_size_of_their_panels_and_are_not_blank(shown):
    assert set(shown.Tags()["images"]) == {"examples/worst_val", "examples/best_val"}
    for tag in shown.Tags()["images"]:
        (event,) = shown.Images(tag)
        image = np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))
        assert image.shape == (event.height, event.width, 3) == (340, 790, 3)
        assert len(np.unique(image.reshape(-1, 3), axis=0)) > 100


@pytest.mark.parametrize(("num_classes", "num_clips"), [(3, 1), (3, 4), (50, 8)])
def test_nothing_is_cut_off(tmp_path, num_classes, num_clips):
    names = tuple(f"{'a_class_with_a_name_of_many_words_' * 2}{k}" for k in range(num_classes))
    clips = noise_clips(tmp_path, num_clips, names)
    probs = np.random.default_rng(0).dirichlet(np.ones(num_classes), num_clips)
    predictions = evaluation_of(clips, probs, names).predictions
    figure = draw_examples(
        predictions, range(num_clips), [picture_of(RECIPE.read(clip.path), RECIPE) for clip in clips], name="worst"
    )
    pixels(figure)
    whole = figure.bbox
    texts = [
        *figure.texts,
        *(panel._left_title for panel in figure.axes),
        figure.axes[-1].yaxis.label,
        *figure.axes[0].get_yticklabels(),
    ]
    for text in texts:
        box = text.get_window_extent()
        assert box.x0 >= whole.x0 and box.x1 <= whole.x1 and box.y0 >= whole.y0 and box.y1 <= whole.y1, text.get_text()
    titles = [panel._left_title.get_window_extent() for panel in figure.axes[: min(4, num_clips)]]
    assert all(left.x1 < right.x0 for left, right in pairwise(titles))


def test_a_file_that_went_away_costs_a_warning_and_its_place(evaluation, tmp_path, events, caplog):
    evaluation.clips[2].path.unlink()
    with SummaryWriter(tmp_path / "events") as writer, caplog.at_level(logging.WARNING):
        Examples(every_n_epochs=1, num_clips=2).write(writer, evaluation)
    assert "2.wav: no such file" in caplog.text
    tags = events(tmp_path / "events").tags
    assert "examples/worst_val" in tags["images"]
    assert [tag for tag in tags["audio"] if "worst" in tag] == ["examples/sounds_worst_val/1"]


def test_counts_by_hand():
    names = ("cat", "dog", "owl")
    clips = tuple(
        Clip(filename=f"{i}.wav", path=Path("/nowhere"), target=0, category="cat", fold=1, source=str(i)) for i in range(3)
    )
    counts = WrongCounts()
    for probs in (
        [[0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]],
        [[0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.9, 0.1, 0.0]],
        [[0.5, 0.3, 0.2], [0.2, 0.1, 0.7], [0.9, 0.1, 0.0]],
    ):
        counts.add(predictions_of(clips, np.zeros(3, dtype=int), np.array(probs), names=names))
    first, second = counts.rows(clips)
    assert first == ("1.wav", "cat", 3, 3, "dog", pytest.approx(-np.log(0.2)))
    assert second == ("2.wav", "cat", 1, 3, "owl", pytest.approx(-(np.log(0.1) + 2 * np.log(0.9)) / 3))


def test_a_state_is_plain_and_counting_goes_on_from_it(evaluation):
    counts, again = WrongCounts(), WrongCounts()
    counts.add(evaluation.predictions)
    again.load_state_dict(json.loads(json.dumps(counts.state_dict())))
    counts.add(evaluation.predictions)
    again.add(evaluation.predictions)
    assert again.rows(evaluation.clips) == counts.rows(evaluation.clips)
    assert again.epochs == 2


def test_often_wrong_counts_every_validation_of_a_run_that_was_resumed(compose, tiny, tmp_path, events, monkeypatch):
    seen: list[Predictions] = []
    original = WrongCounts.add
    monkeypatch.setattr(WrongCounts, "add", lambda counts, found: (seen.append(found), original(counts, found)))
    settings = (*tiny, *PANEL, "schedule=constant", "optimizer.lr=1e-4")  # slow, so that some clips stay wrong
    run.train(compose(*settings, "trainer.max_epochs=2"), tmp_path)
    run.train(compose(*settings, "trainer.max_epochs=3", f"resume={tmp_path}"), tmp_path)

    assert len(seen) == 3
    truth = {name: target for found in seen for name, target in zip(found.filenames, found.targets, strict=True)}
    wrong = {
        name: [
            found.class_names[found.predicted[found.filenames.index(name)]]
            for found in seen
            if found.predicted[found.filenames.index(name)] != truth[name]
        ]
        for name in truth
    }
    losses = {name: np.mean([-np.log(found.probs[found.filenames.index(name), truth[name]]) for found in seen]) for name in truth}
    with (tmp_path / examples.OFTEN_WRONG).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["filename"] for row in rows} == {name for name, guesses in wrong.items() if guesses} != set()
    for row in rows:
        guesses = Counter(wrong[row["filename"]])
        assert (int(row["times_wrong"]), int(row["epochs"])) == (guesses.total(), 3)
        assert guesses[row["most_predicted"]] == max(guesses.values())
        assert float(row["mean_loss"]) == pytest.approx(losses[row["filename"]], abs=1e-4)
        assert row["category"] == row["filename"].split("/")[0]
    order = [(-int(row["times_wrong"]), -float(row["mean_loss"])) for row in rows]
    assert order == sorted(order)
    assert not list(tmp_path.glob(".*part*"))

    # Two epochs are shown, the second and the last, then the test; the first is only counted.
    content = events(tmp_path / "tensorboard").content
    assert [event.step for event in content.Images("examples/worst_val")] == [5, 8]
    assert [event.step for event in content.Images("examples/worst_test")] == [9]


def test_the_counts_stand_in_a_checkpoint_that_loads_as_weights_only(compose, tiny, tmp_path):
    run.train(compose(*tiny, *PANEL, "trainer.max_epochs=1"), tmp_path)
    stored = load_checkpoint(tmp_path / "checkpoints" / "last.ckpt")
    assert stored["callbacks"]["Examples"]["epochs"] == 1
    assert len(stored["callbacks"]["Examples"]["losses"]) == 6


def test_the_worst_of_a_run_is_worst_by_its_predictions_file(compose, tiny, tmp_path, events):
    cfg = compose(*tiny, *PANEL, "trainer.max_epochs=1")
    run.train(cfg, tmp_path)
    clips = build_clips(cfg)
    predictions = read_predictions(tmp_path / "predictions.csv")
    assert predictions.class_names == class_names(clips)
    of_truth = predictions.probs[np.arange(6), predictions.targets]
    worst = build_split(cfg, clips).test[int(of_truth.argmin())]
    (event,) = events(tmp_path / "tensorboard").content.Audio("examples/sounds_worst_test/1")
    sound, _ = soundfile.read(io.BytesIO(event.encoded_audio_string), dtype="float32")
    np.testing.assert_allclose(sound, build_recipe(cfg).read(worst.path), atol=2 / 32768)
