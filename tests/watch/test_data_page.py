"""The pictures of a data set: drawn where there is something to draw, from clips that can be used."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from esc50.data.checklist import inspect
from esc50.data.clip import Clip
from esc50.data.tables import read_table
from esc50.drawing import DPI
from esc50.features.picture import Picture
from esc50.watch.data_page import MAX_PANELS, WIDTH, draw_page, examples, save_page, write_tensorboard

RATE = 8000
CLASSES = ("cat", "dog", "rain on $tin$ roofs")


def spectrogram(clip: Clip) -> Picture:
    """A ramp in place of a log-mel: 20 bands, 30 frames, louder towards the end."""
    return Picture(
        decibels=np.tile(np.linspace(-90.0, 0.0, 30), (20, 1)),
        seconds=1.0,
        frequencies=np.geomspace(30, 4000, 20),
        floor=-90.0,
        ceiling=0.0,
    )


@pytest.fixture
def clips(tmp_path: Path) -> list[Clip]:
    """Two clips of each of three classes, a fifth of a second of noise each."""
    clips = []
    for target, category in enumerate(CLASSES):
        for fold in (1, 2):
            path = tmp_path / f"{fold}-{target}.wav"
            soundfile.write(path, np.random.default_rng(10 * target + fold).uniform(-0.5, 0.5, RATE // 5), RATE)
            clips.append(Clip(filename=path.name, path=path, target=target, category=category, fold=fold, source=path.stem))
    return clips


@pytest.fixture
def table() -> list[Clip]:
    """Fifty classes without audio."""
    return [
        Clip(
            filename=f"{fold}-{target}.wav",
            path=Path("/nowhere") / f"{fold}-{target}.wav",
            target=target,
            category=f"class_{target}",
            fold=fold,
            source=f"{fold}-{target}",
        )
        for target in range(50)
        for fold in range(1, 6)
    ]


def test_a_page_with_audio_has_three_pictures(clips):
    figures = draw_page(inspect(clips, progress=False), clips, spectrogram=spectrogram)
    assert list(figures) == ["balance", "lengths", "spectrograms"]


def test_the_balance_shows_every_class_and_adds_up(clips):
    axes = draw_page(inspect(clips[1:], progress=False), clips[1:], spectrogram=spectrogram)["balance"].axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(CLASSES)
    widths = np.array([[bar.get_width() for bar in of_fold] for of_fold in axes.containers])
    np.testing.assert_array_equal(widths.T, [[0, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 0, 0, 0]])  # class, fold
    assert [text.get_text() for text in axes.texts] == ["1", "2", "2"]


def test_the_lengths_count_every_clip(clips):
    axes = draw_page(inspect(clips, progress=False), clips, spectrogram=spectrogram)["lengths"].axes[0]
    bars = [bar for bar in axes.patches if bar.get_height() > 0]
    assert [bar.get_height() for bar in bars] == [6]
    assert bars[0].get_x() <= 0.2 <= bars[0].get_x() + bars[0].get_width()


def test_spectrograms_have_seconds_and_hertz(clips):
    panels = draw_page(inspect(clips, progress=False), clips, spectrogram=spectrogram)["spectrograms"].axes[:3]
    assert [panel.get_title(loc="left") for panel in panels] == list(CLASSES)
    for panel in panels:
        assert panel.get_xlim() == (0.0, 1.0)
        assert panel.images[0].get_array().shape == (20, 30)
    centres = spectrogram(clips[0]).frequencies
    for label, place in zip(panels[0].get_yticklabels(), panels[0].get_yticks(), strict=True):
        assert np.interp(place, np.arange(20), centres) == pytest.approx(float(label.get_text()))


def test_all_panels_share_one_scale_of_decibels(clips):
    def quieter_with_target(clip):
        picture = spectrogram(clip)
        return replace(picture, decibels=picture.decibels - 10 * clip.target)

    figures = draw_page(inspect(clips, progress=False), clips, spectrogram=quieter_with_target)
    limits = {panel.images[0].get_clim() for panel in figures["spectrograms"].axes[:3]}
    assert limits == {(-80.0, 0.0)}


def test_the_page_is_one_png_of_the_right_size_that_is_not_blank(clips, tmp_path):
    figures = draw_page(inspect(clips, progress=False), clips, spectrogram=spectrogram)
    save_page(figures, tmp_path / "new" / "page.png")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["page.png"]
    with Image.open(tmp_path / "new" / "page.png") as page:
        assert page.format == "PNG"
        pixels = np.asarray(page)
    heights = [round(figure.get_figheight() * DPI) for figure in figures.values()]
    assert pixels.shape[1:] == (round(WIDTH * DPI), 3)
    assert abs(len(pixels) - sum(heights)) <= len(heights)  # each picture ends in a whole pixel
    for part in np.split(pixels, np.cumsum(heights)[:-1]):
        assert part.std() > 10


def test_without_audio_there_is_the_balance_alone(table, tmp_path):
    def unwanted(clip):
        raise AssertionError("no clip has audio to draw")

    figures = draw_page(inspect(table, progress=False), table, spectrogram=unwanted)
    assert list(figures) == ["balance"]
    save_page(figures, tmp_path / "page.png")
    with Image.open(tmp_path / "page.png") as page:
        assert page.height > 50 * 15  # a line of text a class
        assert np.asarray(page).std() > 10


def test_examples_are_usable_clips_one_a_class(clips):
    clips[0].path.write_bytes(b"garbage")  # cat
    soundfile.write(clips[2].path, np.zeros(RATE), RATE)  # dog
    for clip in clips[4:]:  # rain: both broken
        soundfile.write(clip.path, np.full(RATE, np.nan), RATE, subtype="FLOAT")
    checklist = inspect(clips, progress=False)
    assert [clip.filename for clip in examples(checklist, clips)] == ["2-0.wav", "2-1.wav"]


def test_a_silent_example_is_better_than_none(clips):
    for clip in clips[2:4]:
        soundfile.write(clip.path, np.zeros(RATE), RATE)
    chosen = examples(inspect(clips, progress=False), clips)
    assert [clip.filename for clip in chosen] == ["1-0.wav", "1-1.wav", "1-2.wav"]


def test_a_page_of_clips_that_are_all_broken_is_drawn_without_spectrograms(clips):
    for clip in clips:
        soundfile.write(clip.path, np.full(RATE, np.nan), RATE, subtype="FLOAT")
    assert list(draw_page(inspect(clips, progress=False), clips, spectrogram=spectrogram)) == ["balance", "lengths"]


def test_very_many_classes_are_cut_with_a_word(clips):
    many = [
        Clip(filename=f"{target}.wav", path=clips[0].path, target=target, category=f"class_{target}", fold=1, source=f"{target}")
        for target in range(MAX_PANELS + 2)
    ]
    figure = draw_page(inspect(many, progress=False), many, spectrogram=spectrogram)["spectrograms"]
    assert sum(len(panel.images) for panel in figure.axes[:-1]) == MAX_PANELS
    assert figure.get_suptitle() == f"One log-mel per class, the first {MAX_PANELS} of {MAX_PANELS + 2}"


def read_events(folder: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"images": 0, "audio": 0})
    events.Reload()
    return events


def test_tensorboard_holds_the_pictures_and_one_sound_a_class(clips, tmp_path):
    import io

    from torch.utils.tensorboard import SummaryWriter

    checklist = inspect(clips, progress=False)
    figures = draw_page(checklist, clips, spectrogram=spectrogram)
    with SummaryWriter(tmp_path / "tb") as writer:
        write_tensorboard(writer, figures, checklist, clips, sample_rate=RATE)
    events = read_events(tmp_path / "tb")
    assert set(events.Tags()["images"]) == {"data/balance", "data/lengths", "data/spectrograms"}
    assert set(events.Tags()["audio"]) == {f"data/sounds/{category}" for category in CLASSES}
    picture = events.Images("data/balance")[0]
    pixels = np.asarray(Image.open(io.BytesIO(picture.encoded_image_string)))
    assert pixels.shape == (picture.height, picture.width, 3) and pixels.std() > 10
    heard = events.Audio("data/sounds/dog")[0]
    assert (heard.sample_rate, heard.length_frames) == (RATE, RATE // 5)
    samples, rate = soundfile.read(io.BytesIO(heard.encoded_audio_string))
    assert rate == RATE
    np.testing.assert_allclose(samples, soundfile.read(clips[2].path)[0], atol=1e-4)


def test_tensorboard_without_audio_holds_the_balance_alone(table, tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    checklist = inspect(table, progress=False)
    figures = draw_page(checklist, table, spectrogram=spectrogram)
    with SummaryWriter(tmp_path) as writer:
        write_tensorboard(writer, figures, checklist, table, sample_rate=RATE)
    tags = read_events(tmp_path).Tags()
    assert (tags["images"], tags["audio"]) == (["data/balance"], [])


def test_a_sound_of_one_sample_and_a_long_one_are_written(clips, tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    soundfile.write(clips[0].path, np.full(1, 0.5), RATE)
    soundfile.write(clips[2].path, np.random.default_rng(0).uniform(-0.5, 0.5, 12 * RATE), RATE)
    checklist = inspect(clips, progress=False)
    with SummaryWriter(tmp_path) as writer:
        write_tensorboard(writer, {}, checklist, clips, sample_rate=RATE)
    frames = [read_events(tmp_path).Audio(f"data/sounds/{name}")[0].length_frames for name in ("cat", "dog")]
    assert frames == [RATE // 10, 10 * RATE]


def test_drawing_leaves_pyplot_alone(table):
    import matplotlib

    before = dict(matplotlib.rcParams), sys.modules.get("matplotlib.pyplot")
    draw_page(inspect(table, progress=False), table, spectrogram=spectrogram)
    assert (dict(matplotlib.rcParams), sys.modules.get("matplotlib.pyplot")) == before


def test_the_real_table_of_fifty_classes_is_drawn_in_full(shared):
    clips = read_table(shared / "esc50_meta")
    axes = draw_page(inspect(clips, progress=False), clips, spectrogram=spectrogram)["balance"].axes[0]
    assert [text.get_text() for text in axes.texts] == ["40"] * 50
