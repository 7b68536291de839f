"""A checkpoint alone answers for any sound as the test did, whatever the batch, the format or the length."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
import soundfile
import torch

from esc50 import load
from esc50.errors import ConfigError, DataError
from esc50.inference.predictor import Predictor
from esc50.results.predictions import read_predictions, softmax
from esc50.runs import train as run
from esc50.training.checkpoint_files import find_checkpoint, load_checkpoint


@pytest.fixture(scope="module")
def model(trained) -> Predictor:
    return load(trained)


def changed(trained, place, **facts):
    """A copy of the checkpoint that says something else of itself."""
    stored = load_checkpoint(find_checkpoint(trained))
    stored["esc50"] |= facts
    torch.save(stored, place / "changed.ckpt")
    return place / "changed.ckpt"


@pytest.mark.parametrize("batch_size", [1, 2, 7])
def test_logits_are_those_of_the_test_whatever_the_batch(batch_size, trained, model, sounds):
    tested = read_predictions(trained / "predictions.csv")
    stored = np.stack([model.recipe.compute(next(sounds.rglob(name.rpartition("/")[2]))) for name in tested.filenames])
    logits = np.concatenate([model.logits(stored[start : start + batch_size]) for start in range(0, len(stored), batch_size)])
    known = np.log(tested.probs)  # the same up to a constant a clip
    np.testing.assert_allclose(logits - logits.mean(axis=1, keepdims=True), known - known.mean(axis=1, keepdims=True), atol=1e-4)


def test_probabilities_are_those_of_the_temperature_that_was_fitted_to_validation_clips(trained, model, sounds, tmp_path):
    path = sounds / "hum" / "hum0-A.wav"
    logits = model.logits(model.recipe.compute(path)[None])
    assert model.is_calibrated and model.temperature != 1
    np.testing.assert_allclose(model.predict(path).probs, softmax(logits / model.temperature)[0], rtol=1e-6)
    assert model.predict(path).calibrated
    plain = load(changed(trained, tmp_path, temperature=None))
    np.testing.assert_allclose(plain.predict(path).probs, softmax(logits)[0], rtol=1e-6)
    assert not plain.predict(path).calibrated and plain.temperature == 1


def test_without_validation_clips_nothing_is_calibrated(compose, tiny, tmp_path):
    run.train(compose(*tiny, "watch=none", "split=official", "trainer.max_epochs=1"), tmp_path)
    description = load(tmp_path).description
    assert description["temperature"] is None and description["score"]["protocol"] == "official"


def test_formats_rates_and_channels_of_one_sound_have_one_answer(model, sounds, tmp_path):
    sound, rate = soundfile.read(sounds / "whistle" / "whistle0-A.wav", dtype="float32")
    wanted = model.predict(sounds / "whistle" / "whistle0-A.wav")
    for subtype in ("PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "PCM_U8"):
        soundfile.write(tmp_path / f"{subtype}.wav", sound, rate, subtype=subtype)
        found = model.predict(tmp_path / f"{subtype}.wav")
        np.testing.assert_allclose(found.probs, wanted.probs, atol=0.05 if subtype == "PCM_U8" else 1e-3)
    import soxr

    stereo = np.stack([soxr.resample(sound, rate, 48000, quality="VHQ")] * 2, axis=1)
    soundfile.write(tmp_path / "stereo.flac", stereo, 48000)
    for found in (model.predict(tmp_path / "stereo.flac"), model.predict(stereo, sample_rate=48000)):
        assert found.label == wanted.label
        np.testing.assert_allclose(found.probs, wanted.probs, atol=0.05)
    np.testing.assert_array_equal(model.predict(sound, sample_rate=rate).probs, wanted.probs)


def test_silence_and_very_short_sounds_have_an_answer_and_nothing_has_none(model, tmp_path):
    for num_samples in (4000, 160, 1):
        soundfile.write(tmp_path / "quiet.wav", np.zeros(num_samples), 8000)
        found = model.predict(tmp_path / "quiet.wav")
        assert np.isfinite(found.probs).all() and found.probs.sum() == pytest.approx(1)
        assert found.seconds == pytest.approx(num_samples / 8000) and found.windows == ()
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), 8000)
    with pytest.raises(DataError, match=r"empty\.wav: holds no samples"):
        model.predict(tmp_path / "empty.wav")


def test_many_files_are_answered_in_order_as_one_by_one_though_they_share_batches(model, sounds, tmp_path):
    parts = [soundfile.read(sounds / name)[0] for name in ("hum/hum1-A.wav", "hiss/hiss1-A.wav", "whistle/whistle1-A.wav")]
    soundfile.write(tmp_path / "long.wav", np.concatenate(parts), 8000)
    (tmp_path / "bad.wav").write_bytes(b"<html>")
    paths = [
        sounds / "hum" / "hum0-A.wav",
        tmp_path / "long.wav",
        tmp_path / "bad.wav",
        sounds / "hiss" / "hiss0-A.wav",
        tmp_path / "nowhere.wav",
        tmp_path / "long.wav",
    ]
    for batch_size in (1, 2, 16):
        found = list(model.predict_files(paths, batch_size=batch_size))
        assert [path for path, _ in found] == [str(path) for path in paths]
        for path, one in found:
            if isinstance(one, DataError):
                assert path.endswith(("bad.wav", "nowhere.wav"))
                continue
            alone = model.predict(path)
            assert one.label == alone.label and one.file == path and len(one.windows) == len(alone.windows)
            np.testing.assert_allclose(one.probs, alone.probs, atol=1e-5)
    windows = found[1][1].windows
    assert [(one.start, one.end) for one in windows] == [(0.0, 0.5), (0.5, 1.0), (1.0, 1.5)]
    np.testing.assert_allclose(
        [one.probability for one in windows], [model.predict(part, sample_rate=8000).probability for part in parts], atol=1e-5
    )


def test_names_that_look_like_numbers_stay_names(trained, sounds, tmp_path):
    renamed = load(changed(trained, tmp_path, class_names=["0", "1", "10"]))
    found = renamed.predict(sounds / "hum" / "hum0-A.wav")
    assert found.label == ("0", "1", "10")[int(found.probs.argmax())]


@pytest.mark.slow
def test_a_checkpoint_alone_is_enough_in_a_fresh_process(trained, model, sounds, tmp_path):
    shutil.copy(find_checkpoint(trained), tmp_path / "model.ckpt")
    shutil.copy(sounds / "hum" / "hum0-A.wav", tmp_path / "sound.wav")
    torch.load(tmp_path / "model.ckpt", weights_only=True)
    program = "from esc50 import load; found = load('model.ckpt').predict('sound.wav'); print(found.label, found.probability)"
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    label, probability = ended.stdout.split()
    wanted = model.predict(tmp_path / "sound.wav")
    assert label == wanted.label and float(probability) == pytest.approx(wanted.probability, abs=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_rate": None}, "sample_rate=None: wanted the rate of the samples in Hz"),
        ({"sample_rate": 0}, "sample_rate=0: wanted the rate"),
        ({"sample_rate": 8000, "num_top": 0}, "num_top=0"),
        ({"sample_rate": 8000, "window": 0.6}, "window=0.6: the model was trained on 0.5 seconds"),
        ({"sample_rate": 8000, "hop": 0}, "hop=0: wanted seconds"),
    ],
)
def test_what_cannot_be_is_refused(options, message, model):
    with pytest.raises(ConfigError) as caught:
        model.predict(np.zeros(4000), **options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("target", ["os.system", "collections.OrderedDict", "no.such.module.Net", "esc50.models.melcnn.Nothing"])
def test_a_checkpoint_that_names_no_network_runs_nothing(target, trained, tmp_path, monkeypatch):
    import os

    monkeypatch.setattr(os, "system", lambda *_: pytest.fail("it was called"))
    config = load_checkpoint(find_checkpoint(trained))["esc50"]["config"]
    with pytest.raises(DataError):
        load(changed(trained, tmp_path, config=config | {"model": {"_target_": target, "command": "true"}}))


@pytest.mark.parametrize(
    "place", [("model", "channels"), ("schedule", "warmup"), ("augment", "waveform"), ("optimizer", "weight_decay")]
)
def test_a_checkpoint_runs_nothing_that_hides_deeper(place, trained, tmp_path):
    """What only training needs is not made at all; what a network is made of names nothing more to call."""
    section, key = place
    touch = {"_target_": "pathlib.Path.touch", "_args_": [{"_target_": "pathlib.Path", "_args_": [str(tmp_path / "ran")]}]}
    config = load_checkpoint(find_checkpoint(trained))["esc50"]["config"]
    value = {"x": touch} if section == "augment" else touch
    path = changed(trained, tmp_path, config=config | {section: config[section] | {key: value}})
    if section == "model":
        with pytest.raises(DataError, match=r"MelCNN, pathlib\.Path\.touch, pathlib\.Path as its network, which is none"):
            load(path)
    else:
        assert load(path).class_names == ("hiss", "hum", "whistle")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("key", ["config", "class_names"])
def test_a_checkpoint_that_does_not_describe_itself_is_refused_in_one_line(key, trained, tmp_path):
    stored = load_checkpoint(find_checkpoint(trained))
    del stored["esc50"][key]
    torch.save(stored, tmp_path / "less.ckpt")
    with pytest.raises(DataError, match=key) as caught:
        load(tmp_path / "less.ckpt")
    assert "\n" not in str(caught.value)


def test_a_checkpoint_of_another_version_is_named_in_one_line(trained, tmp_path):
    config = load_checkpoint(find_checkpoint(trained))["esc50"]["config"]
    del config["features"]["hop_length"]
    with pytest.raises(DataError, match=r"checkpoint, of version [\d.]+, cannot be restored .*hop_length"):
        load(changed(trained, tmp_path, config=config))
