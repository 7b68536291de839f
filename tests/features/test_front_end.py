"""The front end: stored integers become what a model reads, with the statistics of the training clips."""

import numpy as np
import pytest
import torch

from esc50.features.front_end import IMAGENET_MEAN, IMAGENET_STD, FrontEnd
from esc50.features.rows import ComputedRows

KINDS = ["mel_png", "waveform", "logmel"]


class GivenRows:
    """Rows of an array that is there already."""

    def __init__(self, values: np.ndarray):
        self.values = values

    def take(self, indices) -> np.ndarray:
        return self.values[np.asarray(indices)]


def test_levels_become_an_image_from_0_to_1(make_recipe):
    levels = torch.arange(256, dtype=torch.uint8).reshape(2, 8, 16)
    image = FrontEnd(make_recipe(), normalization="none")(levels)
    assert image.shape == (2, 1, 8, 16)
    assert image.dtype == torch.float32
    assert image.flatten().tolist() == pytest.approx([level / 255 for level in range(256)])
    assert image.min() == 0 and image.max() == 1


def test_samples_become_exactly_the_floats_they_were(make_recipe):
    stored = torch.tensor([[-32768, -1, 0, 1, 16384, 32767]], dtype=torch.int16)
    samples = FrontEnd(make_recipe("waveform"), normalization="none")(stored)
    assert samples.dtype == torch.float32
    assert samples.tolist() == [[-1.0, -1 / 32768, 0.0, 1 / 32768, 0.5, 32767 / 32768]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalization", ["train", "none"])
def test_the_stored_batch_is_not_written_into(make_recipe, make_clips, kind, normalization):
    rows = ComputedRows(make_clips(2), make_recipe(kind))
    front_end, stored = FrontEnd(make_recipe(kind), normalization=normalization), torch.from_numpy(rows.take([0, 1]))
    front_end.fit(rows, [0, 1])
    before = stored.clone()
    front_end(stored)
    assert torch.equal(stored, before)


@pytest.mark.parametrize("reference", ["full_scale", "clip"])
def test_logmel_on_the_device_equals_the_png(make_recipe, make_clips, reference):
    mel = {"reference": reference} | ({"db_min": -80.0, "db_max": 0.0} if reference == "clip" else {})
    clips = make_clips(4)
    kept, computed = (
        FrontEnd(recipe, normalization="none")(torch.from_numpy(ComputedRows(clips, recipe).take(range(4))))
        for recipe in (make_recipe("mel_png", mel=mel), make_recipe("logmel", mel=mel))
    )
    assert kept.shape == computed.shape == (4, 1, 16, 41)
    half_a_level = 0.5 / 255
    assert (kept - computed).abs().max() < half_a_level + 0.05 / 80


def test_silence_is_zero_in_both_kinds_of_image(make_recipe):
    silence = np.zeros(3200, dtype=np.float32)
    for reference in ("full_scale", "clip"):
        for kind in ("mel_png", "logmel"):
            recipe = make_recipe(kind, mel={"reference": reference})
            stored = torch.from_numpy(recipe.from_waveform(silence)[None])
            assert not FrontEnd(recipe, normalization="none")(stored).any()


@pytest.mark.parametrize("kind", KINDS)
def test_training_clips_get_mean_0_and_deviation_1(make_recipe, make_clips, kind):
    rows, training = ComputedRows(make_clips(40), make_recipe(kind)), np.arange(35)
    front_end = FrontEnd(make_recipe(kind), normalization="train")
    front_end.fit(rows, training)
    x = front_end(torch.from_numpy(rows.take(training)))
    assert x.mean() == pytest.approx(0, abs=1e-4)
    assert x.std() == pytest.approx(1, abs=1e-3)
    assert front_end.num_channels == 1


def test_statistics_do_not_depend_on_the_other_clips(make_recipe):
    levels = np.random.default_rng(0).integers(0, 100, (40, 16, 41), dtype=np.uint8)
    training = [0, 3, 7, *range(10, 40)]
    others = np.setdiff1d(np.arange(40), training)
    changed = levels.copy()
    changed[others] = 255
    fitted = []
    for values in (levels, changed):
        front_end = FrontEnd(make_recipe(), normalization="train")
        front_end.fit(GivenRows(values), training)
        fitted.append(front_end)
    assert torch.equal(fitted[0].mean, fitted[1].mean)
    assert torch.equal(fitted[0].std, fitted[1].std)
    assert fitted[0].mean.item() == pytest.approx(levels[training].mean() / 255, rel=1e-5)
    assert fitted[0].std.item() == pytest.approx(levels[training].std() / 255, rel=1e-5)


def test_silence_alone_can_be_normalised(make_recipe):
    rows = GivenRows(np.zeros((4, 16, 41), dtype=np.uint8))
    front_end = FrontEnd(make_recipe(), normalization="train")
    front_end.fit(rows, range(4))
    assert not front_end(torch.from_numpy(rows.values)).any()


def test_imagenet_has_three_channels_with_its_own_numbers(make_recipe):
    front_end = FrontEnd(make_recipe(), normalization="imagenet")
    front_end.fit(GivenRows(np.zeros((1, 4, 5), dtype=np.uint8)), [0])  # the clips do not matter
    levels = torch.randint(0, 256, (2, 4, 5), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    image = front_end(levels)
    assert image.shape == (2, 3, 4, 5)
    assert front_end.num_channels == 3
    assert IMAGENET_MEAN == (0.485, 0.456, 0.406) and IMAGENET_STD == (0.229, 0.224, 0.225)
    for channel, (mean, std) in enumerate(zip(IMAGENET_MEAN, IMAGENET_STD, strict=True)):
        assert torch.allclose(image[:, channel], (levels / 255 - mean) / std, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_travel_in_the_state_dict(make_recipe, make_clips, kind):
    rows, recipe = ComputedRows(make_clips(3), make_recipe(kind)), make_recipe(kind)
    fitted, fresh = (FrontEnd(recipe, normalization="train") for _ in range(2))
    fitted.fit(rows, [0, 1])
    stored = torch.from_numpy(rows.take([2]))
    assert not torch.equal(fresh(stored), fitted(stored))
    fresh.load_state_dict(fitted.state_dict())
    assert torch.equal(fresh(stored), fitted(stored))


@pytest.mark.parametrize("kind", KINDS)
def test_the_steps_make_the_whole(make_recipe, make_clips, kind):
    rows, recipe = ComputedRows(make_clips(2), make_recipe(kind)), make_recipe(kind)
    front_end = FrontEnd(recipe, normalization="train")
    front_end.fit(rows, [0])
    stored = torch.from_numpy(rows.take([0, 1]))
    assert torch.equal(front_end(stored), front_end.normalize(front_end.spectrogram(front_end.decode(stored))))
    assert not list(front_end.parameters())  # nothing to train


def test_half_precision_around_it_changes_nothing(make_recipe, make_clips):
    recipe = make_recipe("logmel")
    rows, front_end = ComputedRows(make_clips(2), recipe), FrontEnd(recipe, normalization="train")
    front_end.fit(rows, [0, 1])
    stored = torch.from_numpy(rows.take([0, 1]))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = front_end(stored)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, front_end(stored))
