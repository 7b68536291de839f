"""A picture of maps has seconds and Hz on its axes, the map where it belongs, and says whose map it is."""

import numpy as np
import pytest

from esc50.drawing import pixels
from esc50.explain.map_picture import OPACITY, ExplainedClip, draw_maps, stored_picture
from esc50.features.logmel import LogMelSpec
from esc50.features.picture import picture_of
from esc50.features.recipe import Recipe

RATE, SECONDS = 8000, 0.5
MEL = LogMelSpec(
    sample_rate=RATE, n_fft=512, win_length=400, hop_length=160, n_mels=32, f_min=0, f_max=4000, db_min=-70, db_max=40
)
IMAGES = Recipe(kind="mel_png", sample_rate=RATE, seconds=SECONDS, mel=MEL)
SAMPLES = Recipe(kind="waveform", sample_rate=RATE, seconds=SECONDS)
NUM_SAMPLES = IMAGES.num_samples


@pytest.fixture
def tone() -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * 1000 * np.arange(NUM_SAMPLES) / RATE)).astype(np.float32)


def clip_of(waveform: np.ndarray, recipe: Recipe, values: np.ndarray, **more) -> ExplainedClip:
    facts = {"name": "a.wav", "explained": "dog", "prob": 0.625} | more
    return ExplainedClip(stored=recipe.from_waveform(waveform), map=values, **facts)


def upper_right(shape: tuple[int, int]) -> np.ndarray:
    """A map of high frequencies late in the clip."""
    values = np.zeros(shape, dtype=np.float32)
    values[shape[0] // 2 :, shape[1] // 2 :] = 1
    return values


def test_the_picture_of_a_stored_clip_is_that_of_its_recording(tone):
    for recipe, allowed in ((IMAGES, 110 / 255 / 2 * 1.01), (SAMPLES, 1e-6)):
        stored = recipe.from_waveform(tone)
        expected = picture_of(tone if recipe is IMAGES else stored.astype(np.float32) / 32768, recipe)
        found = stored_picture(stored, recipe)
        assert np.abs(found.decibels - expected.decibels).max() <= allowed
        assert (found.seconds, found.floor, found.ceiling) == (SECONDS, expected.floor, expected.ceiling)
        np.testing.assert_array_equal(found.frequencies, expected.frequencies)


def test_a_spectrogram_has_the_map_over_it_where_the_map_is(tone):
    values = upper_right(IMAGES.stored_shape)
    figure = draw_maps([clip_of(tone, IMAGES, values)], IMAGES)
    plain, mapped = figure.axes[:2]
    assert (plain.get_xlabel(), plain.get_ylabel(), mapped.get_xlabel()) == (
        "time in seconds",
        "frequency in Hz",
        "time in seconds",
    )
    below, over = mapped.images
    np.testing.assert_array_equal(over.get_array(), values)
    np.testing.assert_allclose(over.get_alpha(), OPACITY * values)
    assert over.get_extent() == below.get_extent() == plain.images[0].get_extent() == [0, SECONDS, -0.5, 31.5]
    np.testing.assert_array_equal(below.get_array(), plain.images[0].get_array())

    shown = pixels(figure).astype(int)
    left, bottom, right, top = mapped.get_window_extent().extents.astype(int)
    panel = shown[shown.shape[0] - top + 2 : shown.shape[0] - bottom - 2, left + 2 : right - 2]
    reddish = panel[..., 0] - panel[..., 2] > 40
    half, middle = panel.shape[0] // 2, panel.shape[1] // 2
    assert reddish[: half - 8, middle + 8 :].all()
    assert not reddish[half + 8 :].any() and not reddish[:, : middle - 8].any()


def test_a_tone_is_the_brightest_band_at_its_frequency(tone):
    figure = draw_maps([clip_of(tone, IMAGES, upper_right(IMAGES.stored_shape))], IMAGES)
    image = figure.axes[0].images[0]
    assert image.get_array().max() == 0 and image.get_clim() == (-80, 0)
    band = image.get_array().mean(axis=1).argmax()
    (place,) = (
        place
        for place, label in zip(figure.axes[0].get_yticks(), figure.axes[0].get_yticklabels(), strict=True)
        if label.get_text() == "1000"
    )
    assert abs(band - place) <= 1


def test_a_waveform_has_the_map_as_a_band_and_as_a_curve(tone):
    values = np.linspace(0, 1, NUM_SAMPLES, dtype=np.float32)
    figure = draw_maps([clip_of(tone, SAMPLES, values)], SAMPLES)
    spectrogram, waveform = figure.axes[:2]
    band = waveform.images[0]
    assert band.get_array().shape == (1, 1000) and band.get_extent()[:2] == [0, SECONDS] == list(waveform.get_xlim())
    np.testing.assert_allclose(band.get_array()[0], values[::4])
    assert waveform.get_ylabel().startswith("sample value") and spectrogram.get_ylabel() == "frequency in Hz"
    outline = waveform.collections[0].get_paths()[0].vertices
    assert outline[:, 1].max() == pytest.approx(0.5, abs=0.01) and outline[:, 1].min() == pytest.approx(-0.5, abs=0.01)
    low, high = spectrogram.get_ylim()
    times, heights = spectrogram.lines[-1].get_data()
    np.testing.assert_allclose((heights - low) / (high - low), values[::4], atol=1e-6)
    assert times[0] == pytest.approx(0.5 / RATE) and times[-1] < SECONDS


def test_silence_is_black(tone):
    figure = draw_maps([clip_of(0 * tone, IMAGES, np.zeros(IMAGES.stored_shape, np.float32))], IMAGES)
    assert (figure.axes[0].images[0].get_array() == -80).all()


def test_a_title_names_file_truth_class_and_probability(tone):
    some = upper_right(IMAGES.stored_shape)
    titles = {
        "a.wav: map of dog, probability 0.62": clip_of(tone, IMAGES, some),
        "a.wav: is dog, map of dog, probability 0.62": clip_of(tone, IMAGES, some, truth="dog"),
        "a.wav: is cat, map of dog, probability 0.62 (wrong)": clip_of(tone, IMAGES, some, truth="cat"),
        "a.wav: map of dog, probability 0.62; nothing speaks for it": clip_of(tone, IMAGES, 0 * some),
    }
    assert [clip.title for clip in titles.values()] == list(titles)
    figure = draw_maps(list(titles.values()), IMAGES)
    assert [axes.get_title(loc="left") for axes in figure.axes[:8:2]] == list(titles)


@pytest.mark.parametrize(("recipe", "number"), [(IMAGES, 1), (IMAGES, 6), (SAMPLES, 1), (SAMPLES, 3)])
def test_nothing_is_cut_off_and_no_text_runs_into_another(tone, recipe, number):
    long = {"name": "washing_machine" * 6 + ".wav", "truth": "mouse_click" * 6, "explained": "crackling_fire" * 6}
    clip = clip_of(tone, recipe, np.zeros(recipe.stored_shape, np.float32), **long)
    figure = draw_maps([clip] * number, recipe)
    height, width = pixels(figure).shape[:2]
    assert (width, height) == (1150, round(240 * number + 50))
    texts = [
        text
        for axes in figure.axes
        for text in (
            axes.title,
            axes._left_title,
            axes.xaxis.label,
            axes.yaxis.label,
            *axes.get_xticklabels(),
            *axes.get_yticklabels(),
        )
        if text.get_text() and text.get_visible()
    ]
    boxes = [text.get_window_extent() for text in texts]
    assert len(boxes) > 10 * number
    cut = [
        text.get_text()
        for text, box in zip(texts, boxes, strict=True)
        if min(box.x0, box.y0) < 0 or box.x1 > width or box.y1 > height
    ]
    assert not cut
    labels = [axes.yaxis.label.get_window_extent() for axes in figure.axes]
    panels = [axes.get_window_extent() for axes in figure.axes]
    assert not any(label.overlaps(panel) for label in labels if label.width for panel in panels)
