"""The maps in TensorBoard are of the same varied clips each time, of the class they say, and cost the run nothing."""

import io
import logging
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from esc50.assembly.retest import restore_task
from esc50.errors import ConfigError
from esc50.results.predictions import read_predictions
from esc50.runs import train as run
from esc50.training.checkpoint_files import load_checkpoint
from esc50.watch import attention
from esc50.watch.attention import Attention, varied

PANEL = ("watch=none", "+watch/panels@watch.attention=attention", "watch.attention.every_n_epochs=1")


@pytest.fixture
def shown(monkeypatch) -> list:
    """The clips of every picture, in the order of drawing."""
    seen: list = []
    original = attention.draw_maps
    monkeypatch.setattr(attention, "draw_maps", lambda clips, recipe: (seen.append(clips), original(clips, recipe))[1])
    return seen


def test_one_clip_of_every_class_comes_before_a_second_of_any():
    targets = [2, 2, 0, 0, 0, 1]
    assert varied(targets, 3) == [2, 5, 0]
    assert varied(targets, 5) == [2, 5, 0, 3, 1]
    assert varied(targets, 99) == [2, 5, 0, 3, 1, 4]


def test_of_many_classes_those_shown_are_spread_evenly():
    targets = [target for target in range(50) for _ in range(3)]
    assert [targets[position] for position in varied(targets, 5)] == [0, 10, 20, 30, 40]
    assert len(set(varied(targets, 7))) == 7


def test_a_run_shows_each_due_validation_and_the_test(compose, tiny, tmp_path, events, shown):
    run.train(compose(*tiny, *PANEL, "watch.attention.num_clips=3"), tmp_path)

    content = events(tmp_path / "tensorboard").content
    tags = [tag for tag in content.Tags()["images"] if tag.startswith("attention")]
    assert sorted(tags) == ["attention/maps_test", "attention/maps_val"]
    assert [event.step for event in content.Images("attention/maps_val")] == [2, 5]
    assert [event.step for event in content.Images("attention/maps_test")] == [6]
    for event in (*content.Images("attention/maps_val"), *content.Images("attention/maps_test")):
        with Image.open(io.BytesIO(event.encoded_image_string)) as image:
            assert image.size == (1150, 3 * 240 + 50)
            assert len(np.unique(np.asarray(image).reshape(-1, 3), axis=0)) > 1000

    first, second, test = shown
    assert [clip.name for clip in first] == [clip.name for clip in second]
    assert [clip.truth for clip in test] == ["hiss", "hum", "whistle"]
    predictions = read_predictions(tmp_path / "predictions.csv")
    for clip in test:
        position = predictions.filenames.index(clip.name)
        assert clip.explained == predictions.class_names[predictions.predicted[position]]
        assert clip.prob == pytest.approx(predictions.probs[position].max())
        assert clip.map.shape == clip.stored.shape == (32, 26)


def test_the_map_may_be_that_of_the_true_class(compose, tiny, tmp_path, shown):
    run.train(compose(*tiny, *PANEL, "watch.attention.for_class=truth", "trainer.max_epochs=1"), tmp_path)
    assert all(clip.explained == clip.truth for clips in shown for clip in clips)
    predictions = read_predictions(tmp_path / "predictions.csv")
    for clip in shown[-1]:
        position = predictions.filenames.index(clip.name)
        assert clip.prob == pytest.approx(predictions.probs[position, predictions.targets[position]])


@pytest.mark.parametrize(
    "overrides",
    [
        ("trainer.freeze_epochs=2",),
        *(
            pytest.param(overrides, marks=pytest.mark.slow)
            for overrides in (
                (),
                ("trainer.freeze_epochs=1", "trainer.cache_frozen=false"),
                ("model.gradient_checkpointing=true",),
            )
        ),
    ],
)
def test_a_run_with_the_panel_learns_exactly_what_one_without_learns(overrides, compose, tiny, tmp_path, shown):
    settings = (*tiny, "model.dropout=0.5", *overrides)
    run.train(compose(*settings, *PANEL), tmp_path / "with")
    run.train(compose(*settings, "watch=none"), tmp_path / "without")
    with_, without = (load_checkpoint(tmp_path / name / "checkpoints" / "last.ckpt") for name in ("with", "without"))
    assert all(torch.equal(value, without["state_dict"][name]) for name, value in with_["state_dict"].items())
    assert len(shown) == 3 and all(len(clips) == 4 for clips in shown)
    assert any(clip.map.any() for clip in shown[-1])


def test_a_waveform_model_is_shown_over_time(compose, tiny, tmp_path, shown, events):
    of_waveforms = [
        setting
        for setting in tiny
        if not setting.startswith(("model.", "features.n_", "features.f_", "features.hop", "features.win"))
    ]
    run.train(compose("model=audionet", *of_waveforms, *PANEL, "trainer.max_epochs=1", "watch.attention.num_clips=2"), tmp_path)
    assert [clip.map.shape for clips in shown for clip in clips] == [(4000,)] * 4
    assert "attention/maps_val" in events(tmp_path / "tensorboard").tags["images"]


def test_a_layer_that_is_not_there_is_refused_before_training(compose, tiny, tmp_path, events):
    with pytest.raises(ConfigError, match=r"layer=bloks: .*did you mean blocks"):
        run.train(compose(*tiny, *PANEL, "watch.attention.layer=bloks"), tmp_path)
    assert not events(tmp_path / "tensorboard").scalars
    assert not (tmp_path / "checkpoints" / "last.ckpt").exists()


def test_a_layer_can_be_named(compose, tiny, tmp_path, shown):
    run.train(compose(*tiny, *PANEL, "watch.attention.layer=stem", "trainer.max_epochs=1"), tmp_path)
    task = restore_task(load_checkpoint(tmp_path / "checkpoints/last.ckpt"))
    stored = np.stack([clip.stored for clip in shown[-1]])
    explained = [["hiss", "hum", "whistle"].index(clip.explained) for clip in shown[-1]]
    expected = attention.grad_cam(task.model, attention.model_input(task, stored), explained, layer="stem")
    np.testing.assert_allclose(np.stack([clip.map for clip in shown[-1]]), expected, atol=1e-5)


def test_a_network_without_maps_costs_one_warning_a_run(monkeypatch, caplog, tmp_path):
    def refused(*args, **more):
        raise ConfigError("this model makes no feature map")

    monkeypatch.setattr(attention, "explained_clips", refused)
    settings = {"every_n_epochs": 1, "num_clips": 1, "for_class": "predicted"}
    one, other = (SimpleNamespace(log_dir=tmp_path / name) for name in ("one", "other"))
    with caplog.at_level(logging.WARNING):
        for writer in (one, one, other):
            Attention(**settings, layer=None).write(writer, None)
    assert caplog.messages == ["no maps in TensorBoard: this model makes no feature map"] * 2
    with pytest.raises(ConfigError):
        Attention(**settings, layer="stem").write(one, None)
