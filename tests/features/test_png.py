"""PNGs: exactly the values, nothing around them, with what made them written inside."""

import json

import numpy as np
import pytest
from PIL import Image

from esc50.errors import ConfigError
from esc50.features.png import is_whole, read_png, write_png

PARAMETERS = {"kind": "mel_png", "mel": {"n_mels": 16, "f_max": 4000.5}, "seconds": 0.4}
IDENTITY = {"size": 6444, "mtime_ns": 1_700_000_000_123_456_789}


@pytest.fixture
def image() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (16, 41), dtype=np.uint8)


@pytest.fixture
def path(tmp_path, image):
    write_png(tmp_path / "new" / "a.png", image, parameters=PARAMETERS, identity=IDENTITY)
    return tmp_path / "new" / "a.png"


def test_what_is_written_is_read(path, image):
    read, texts = read_png(path)
    assert read.dtype == np.uint8
    assert np.array_equal(read, image)
    assert texts == {"parameters": PARAMETERS, "source": IDENTITY}


def test_the_picture_is_grey_and_exactly_frames_by_mel_bands(path, image):
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        assert picture.mode == "L"
        assert picture.size == (41, 16)
        # Every pixel is a value, upside down: no axes, no border, no rescaling.
        assert np.array_equal(np.asarray(picture), np.flipud(image))


def test_low_frequencies_are_at_the_bottom(tmp_path, make_recipe):
    recipe = make_recipe(mel={"n_mels": 32})
    tone = 0.5 * np.sin(2 * np.pi * 100 * np.arange(recipe.num_samples) / recipe.sample_rate)
    values = recipe.from_waveform(tone.astype(np.float32))
    write_png(tmp_path / "tone.png", values, parameters=recipe.parameters(), identity=IDENTITY)
    with Image.open(tmp_path / "tone.png") as picture:
        assert picture.size == (recipe.mel.num_frames(recipe.num_samples), 32)
        loudest = np.asarray(picture)[:, 5:-5].argmax(axis=0)
    assert (loudest >= 30).all()  # of rows 0 (top) to 31


def test_text_chunks_say_what_made_the_picture(path):
    with Image.open(path) as picture:
        assert json.loads(picture.text["esc50.parameters"]) == PARAMETERS
        assert json.loads(picture.text["esc50.source"]) == IDENTITY


def test_colours_leave_the_values_as_they_are(tmp_path, image):
    import matplotlib

    path = tmp_path / "colour.png"
    write_png(path, image, parameters=PARAMETERS, identity=IDENTITY, colormap="viridis")
    read, texts = read_png(path)
    assert np.array_equal(read, image)
    assert texts == {"parameters": PARAMETERS, "source": IDENTITY}
    with Image.open(path) as picture:
        assert picture.mode == "P"
        assert picture.size == (41, 16)
        seen = np.asarray(picture.convert("RGB"))
    assert np.array_equal(seen, matplotlib.colormaps["viridis"](np.flipud(image), bytes=True)[..., :3])


def test_an_unknown_colour_map_is_refused_in_one_line(tmp_path, image):
    with pytest.raises(ConfigError, match=r"features\.colormap.*'virdis'") as caught:
        write_png(tmp_path / "a.png", image, parameters=PARAMETERS, identity=IDENTITY, colormap="virdis")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_the_image_given_is_not_written_into(tmp_path, image):
    before = image.copy()
    write_png(tmp_path / "a.png", image, parameters=PARAMETERS, identity=IDENTITY, colormap="magma")
    assert np.array_equal(image, before)


def test_a_png_cut_short_anywhere_is_not_whole(path, tmp_path):
    whole = path.read_bytes()
    assert is_whole(path)
    for length in (*range(0, len(whole), 29), *range(len(whole) - 13, len(whole))):
        (tmp_path / "cut.png").write_bytes(whole[:length])
        assert not is_whole(tmp_path / "cut.png")
    assert not is_whole(tmp_path / "absent.png")


def test_a_damaged_png_is_refused_or_read_right(path, tmp_path, image):
    """Whatever byte is wrong, a wrong value never passes for a right one."""
    whole, damaged = path.read_bytes(), tmp_path / "damaged.png"
    refused, positions = 0, range(0, len(whole), 7)
    for position in positions:
        damaged.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        try:
            read, texts = read_png(damaged)
        except (OSError, ValueError):
            refused += 1
        else:
            assert np.array_equal(read, image) or texts != {"parameters": PARAMETERS, "source": IDENTITY}, position
    assert refused > len(positions) // 2


def test_pictures_of_others_are_refused_or_carry_no_parameters(tmp_path, image):
    Image.fromarray(image).save(tmp_path / "plain.png")
    assert read_png(tmp_path / "plain.png")[1] == {}
    Image.fromarray(image).save(tmp_path / "photo.png", format="JPEG")
    with pytest.raises(OSError, match="cannot identify"):
        read_png(tmp_path / "photo.png")
