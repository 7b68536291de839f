"""Recipes: how a recording becomes stored values, and a key that nothing which shapes them escapes."""

from dataclasses import fields, replace

import numpy as np
import pytest
import soundfile

from esc50.data import audio
from esc50.features.logmel import LogMelSpec, log_mel, to_levels
from esc50.features.recipe import Recipe

OTHER = {
    "sample_rate": 8001,
    "seconds": 0.41,
    "pad": "repeat",
    "n_fft": 1024,
    "win_length": 399,
    "hop_length": 81,
    "n_mels": 17,
    "f_min": 20.0,
    "f_max": 3999.0,
    "db_min": -71.0,
    "db_max": 41.0,
    "reference": "clip",
}
OF_MEL = [field.name for field in fields(LogMelSpec)]
OF_SAMPLES = [field.name for field in fields(Recipe) if field.name not in ("kind", "mel")]


@pytest.mark.parametrize("name", OF_MEL)
def test_any_parameter_of_the_log_mel_gives_another_key(make_recipe, name):
    recipe = make_recipe()
    other = replace(recipe, mel=replace(recipe.mel, **{name: OTHER[name]}))
    assert other.key() != recipe.key()
    assert other.parameters() != recipe.parameters()


@pytest.mark.parametrize("kind", ["mel_png", "waveform", "logmel"])
@pytest.mark.parametrize("name", OF_SAMPLES)
def test_any_parameter_of_the_samples_gives_another_key(make_recipe, kind, name):
    recipe = make_recipe(kind)
    assert replace(recipe, **{name: OTHER[name]}).key() != recipe.key()


def test_no_two_of_these_recipes_share_a_key(make_recipe):
    recipe = make_recipe()
    recipes = [
        recipe,
        make_recipe("waveform"),
        *(replace(recipe, mel=replace(recipe.mel, **{name: OTHER[name]})) for name in OF_MEL),
        *(replace(recipe, **{name: OTHER[name]}) for name in OF_SAMPLES),
    ]
    assert len({recipe.key() for recipe in recipes}) == len(recipes) == 15


def test_equal_parameters_give_the_same_key(make_recipe):
    assert make_recipe().key() == make_recipe().key()
    whole = make_recipe(seconds=1, mel={"f_min": 0, "f_max": 4000, "db_min": -70, "db_max": 40})
    assert make_recipe(seconds=1.0) == whole
    assert make_recipe(seconds=1.0).key() == whole.key()


def test_waveform_and_logmel_keep_the_same_samples(make_recipe):
    assert make_recipe("logmel").key() == make_recipe("waveform").key()
    assert make_recipe("logmel", mel={"n_mels": 20}).key() == make_recipe("waveform").key()
    assert make_recipe("logmel").parameters() == make_recipe("waveform").parameters()


def test_a_raised_format_gives_another_key(make_recipe, monkeypatch):
    before = make_recipe().key()
    monkeypatch.setattr("esc50.features.recipe.FORMAT", 1000)
    assert make_recipe().key() != before


@pytest.mark.parametrize(
    "kind, dtype, shape", [("mel_png", np.uint8, (16, 41)), ("waveform", np.int16, (3200,)), ("logmel", np.int16, (3200,))]
)
def test_what_is_kept_has_the_shape_and_type_that_the_recipe_states(make_recipe, make_clips, kind, dtype, shape):
    recipe = make_recipe(kind)
    for seconds in (0.05, 0.4, 1.0):
        kept = recipe.compute(make_clips(1, seconds=seconds)[0].path)
        assert kept.shape == recipe.stored_shape == shape
        assert kept.dtype == recipe.stored_dtype == dtype


def test_samples_of_a_16_bit_file_are_kept_exactly(make_recipe, make_clips):
    path = make_clips(1)[0].path
    assert np.array_equal(make_recipe("waveform").compute(path), soundfile.read(path, dtype="int16")[0])


def test_an_image_is_the_log_mel_of_the_samples(make_recipe, make_clips):
    recipe, path = make_recipe(), make_clips(1)[0].path
    waveform = audio.read(path, sample_rate=8000)
    assert np.array_equal(recipe.compute(path), to_levels(log_mel(waveform, recipe.mel), recipe.mel))


def test_a_short_clip_ends_in_silence_or_is_repeated(make_recipe, make_clips):
    path = make_clips(1, seconds=0.1)[0].path
    zero, repeated = make_recipe("waveform").compute(path), make_recipe("waveform", pad="repeat").compute(path)
    assert zero[:800].any() and not zero[800:].any()
    assert np.array_equal(repeated.reshape(4, 800), np.tile(zero[:800], (4, 1)))


@pytest.mark.parametrize("seconds, short", [(0.001, True), (0.395, True), (0.397, False), (0.4, False), (2.0, False)])
def test_a_clip_is_short_where_more_than_a_hundredth_is_missing(make_recipe, make_clips, seconds, short):
    assert make_recipe().is_short(make_clips(1, seconds=seconds)[0].path) is short


def test_length_counts_in_seconds_whatever_the_rate(make_recipe, tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(4000), 16000)
    assert make_recipe().is_short(tmp_path / "a.wav")
    assert not make_recipe(seconds=0.25).is_short(tmp_path / "a.wav")
