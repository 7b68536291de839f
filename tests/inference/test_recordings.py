"""Recordings of any length become windows that cover them, the same from a file as from its samples."""

import io
import logging
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from esc50.data import audio
from esc50.errors import ConfigError, DataError
from esc50.features.recipe import Recipe
from esc50.inference.recordings import Cut, pieces_of_file, pieces_of_samples, recordings_of, window_starts

RECIPE = Recipe(kind="waveform", sample_rate=8000, seconds=0.5)


def noise(num_samples: int, *channels: int) -> np.ndarray:
    return np.random.default_rng(num_samples).uniform(-0.5, 0.5, (num_samples, *channels))


def write(path: Path, samples: np.ndarray, *, rate: int = 8000, subtype: str = "PCM_16", **format_: str) -> Path:
    soundfile.write(path, samples, rate, subtype=subtype, **format_)
    return path


def windows_of(samples, *, rate: int = 8000, recipe: Recipe = RECIPE, **cut: float) -> np.ndarray:
    """What is kept of the windows of samples, `[windows, time]`."""
    return np.stack([piece.stored for piece in pieces_of_samples(np.asarray(samples), rate, recipe, Cut(**cut))])


# ---------------------------------------------------------------------- where windows begin


@pytest.mark.parametrize(
    ("num_samples", "window", "hop", "starts"),
    [
        (1, 100, 100, [0]),
        (100, 100, 100, [0]),
        (101, 100, 100, [0]),  # one hundredth more than a window is a window
        (102, 100, 100, [0, 2]),
        (200, 100, 100, [0, 100]),
        (201, 100, 100, [0, 100]),  # so little is left out at the end of a longer one, too
        (250, 100, 100, [0, 100, 150]),
        (250, 100, 50, [0, 50, 100, 150]),
        (260, 100, 50, [0, 50, 100, 150, 160]),
        (350, 100, 120, [0, 120, 240, 250]),
        (340, 100, 120, [0, 120, 240]),
        (150, 100, 1000, [0, 50]),
    ],
)
def test_windows_begin_where_they_should(num_samples, window, hop, starts):
    assert window_starts(num_samples, window=window, hop=hop) == starts


@pytest.mark.parametrize("hop", [1, 37, 99, 100])
@pytest.mark.parametrize("num_samples", [1, 99, 100, 101, 102, 137, 199, 201, 202, 777])
def test_windows_that_overlap_or_touch_leave_out_no_more_than_a_hundredth(num_samples, hop):
    starts = window_starts(num_samples, window=100, hop=hop)
    covered = np.zeros(num_samples, dtype=int)
    for start in starts:
        covered[start : start + 100] += 1
    assert starts == sorted(set(starts)) and starts[0] == 0
    assert covered[: len(covered) - 1].all()
    assert num_samples <= 101 or starts[-1] + 100 in (num_samples - 1, num_samples)


# ---------------------------------------------------------------------- parts of files


@pytest.mark.parametrize("subtype", ["PCM_16", "FLOAT"])
@pytest.mark.parametrize("start", [0, 1, 4000, 7999])
def test_a_part_of_a_file_is_that_part_of_the_whole(tmp_path, subtype, start):
    path = write(tmp_path / "a.wav", noise(8000), subtype=subtype)
    whole = audio.read(path, sample_rate=8000)
    np.testing.assert_array_equal(audio.read(path, sample_rate=8000, start=start), whole[start:])
    part = audio.read(path, sample_rate=8000, start=start, num_samples=500)
    np.testing.assert_array_equal(part, audio.fit_length(whole[start : start + 500], 500))


@pytest.mark.parametrize(("rate", "sample_rate"), [(48000, 44100), (22050, 8000), (8000, 44100), (44101, 8000)])
def test_a_part_of_a_file_at_another_rate_is_that_part_of_the_whole(tmp_path, rate, sample_rate):
    path = write(tmp_path / "a.wav", noise(2 * rate), rate=rate)
    whole = audio.read(path, sample_rate=sample_rate)
    length = sample_rate // 3
    for start in (1, length, 2 * length + 7, len(whole) - length):
        part = audio.read(path, sample_rate=sample_rate, start=start, num_samples=length)
        np.testing.assert_allclose(part, whole[start : start + length], atol=1e-3)
        assert np.abs(part).max() > 0.1


@pytest.mark.parametrize(
    ("format_", "subtype"),
    [("WAV", "GSM610"), ("WAV", "IMA_ADPCM"), ("MP3", "MPEG_LAYER_III"), ("OGG", "VORBIS"), ("FLAC", "PCM_16")],
)
def test_parts_of_compressed_files_are_found(tmp_path, format_, subtype):
    """The first of them cannot be sought in."""
    if format_ not in soundfile.available_formats():
        pytest.skip(f"this libsndfile has no {format_}")
    path = write(tmp_path / "a", noise(44100), rate=44100, format=format_, subtype=subtype)
    whole = audio.read(path, sample_rate=8000)
    part = audio.read(path, sample_rate=8000, start=4321, num_samples=2000)
    np.testing.assert_allclose(part, whole[4321:6321], atol=1e-3)


def test_nothing_is_read_from_behind_the_end(tmp_path):
    path = write(tmp_path / "a.wav", noise(800))
    for start in (800, 10**9):
        with pytest.raises(DataError, match=r"holds no samples|nothing left"):
            audio.read(path, sample_rate=8000, start=start)


# ---------------------------------------------------------------------- samples


def test_samples_of_all_types_are_the_same_sound():
    truth = np.rint(noise(4000) * 32768)
    wanted = windows_of(truth.astype(np.int16))
    assert wanted.tolist() == [truth.tolist()]
    for same in ((truth * 65536).astype(np.int32), (truth / 32768).astype(np.float32), truth / 32768):
        np.testing.assert_array_equal(windows_of(same), wanted)
    np.testing.assert_allclose(windows_of((truth / 32768).astype(np.float16)), wanted, atol=2**-12 * 32768)


def test_channels_of_samples_are_averaged():
    stereo = noise(4000, 2)
    np.testing.assert_allclose(windows_of(stereo), windows_of(stereo.mean(axis=1)), atol=1)  # a rounded half
    np.testing.assert_array_equal(windows_of(stereo[:, :1]), windows_of(stereo[:, 0]))


def test_samples_whose_channels_cancel_each_other_are_reported(caplog):
    mono = noise(4000)
    with caplog.at_level(logging.WARNING):
        assert not windows_of(np.stack([mono, -mono], axis=1)).any()
    assert caplog.messages == ["the samples: the channels cancel each other, the mono sound is nearly silent"]


def test_given_samples_are_not_written_into():
    given = np.full(9000, 2.0, dtype=np.float32)
    assert windows_of(given).max() == 32767  # beyond full scale is clipped
    assert (given == 2.0).all()


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros(100, np.uint8), "samples of type uint8: wanted floating point within -1 to 1, int16 or int32"),
        (np.zeros(100, np.int64), "samples of type int64: wanted floating point within -1 to 1, int16 or int32"),
        (np.zeros(100, bool), "samples of type bool: wanted floating point"),
        (np.zeros(100, complex), "samples of type complex128: wanted floating point"),
        (np.array(["a", "b"]), "samples of type <U1: wanted floating point"),
        (np.zeros((2, 4000)), "samples of shape [2, 4000]: wanted [time] or [time, channels]"),
        (np.zeros((1, 4000, 2)), "samples of shape [1, 4000, 2]: wanted [time] or [time, channels]"),
        (np.zeros((4000, 0)), "samples of shape [4000, 0]: wanted [time] or [time, channels]"),
        (np.float64(0.5), "samples of shape []: wanted [time] or [time, channels]"),
        (np.zeros(0), "the samples are none at all; wanted one or more"),
        (np.array([0, np.nan]), "samples that are not finite"),
        (np.array([0, -np.inf], np.float32), "samples that are not finite"),
        (np.array([0, 1e300]), "samples that are not finite"),  # to float32
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_are_no_samples_is_refused_in_one_line(samples, message):
    with pytest.raises(DataError) as caught:
        windows_of(samples)
    assert str(caught.value).startswith(message) and "\n" not in str(caught.value)


def test_too_few_samples_to_resample_are_refused():
    with pytest.raises(DataError, match="the samples: too short to resample from 192000 to 8000 Hz"):
        windows_of(np.zeros(1), rate=192000)


# ---------------------------------------------------------------------- windows of both


@pytest.mark.parametrize("cut", [{}, {"hop": 0.2}, {"window": 0.25}, {"window": 0.2, "hop": 0.3}], ids=str)
@pytest.mark.parametrize("num_samples", [1, 100, 4000, 4040, 4041, 13579])
def test_a_file_and_its_samples_have_the_same_windows(tmp_path, num_samples, cut):
    samples = np.rint(noise(num_samples) * 32768).astype(np.int16)
    path = write(tmp_path / "a.wav", samples)
    of_file, of_samples = (
        list(pieces)
        for pieces in (pieces_of_file(path, RECIPE, Cut(**cut)), pieces_of_samples(samples, 8000, RECIPE, Cut(**cut)))
    )
    assert [(one.start, one.end) for one in of_file] == [(one.start, one.end) for one in of_samples]
    np.testing.assert_array_equal([one.stored for one in of_file], [one.stored for one in of_samples])


@pytest.mark.parametrize("rate", [48000, 22050])
def test_a_file_and_its_samples_at_another_rate_have_nearly_the_same_windows(tmp_path, rate):
    samples = noise(2 * rate, 2)
    path = write(tmp_path / "a.wav", samples, rate=rate, subtype="FLOAT")
    of_file = [piece.stored for piece in pieces_of_file(path, RECIPE, Cut())]
    of_samples = windows_of(samples, rate=rate)
    assert of_samples.shape == (4, 4000) and np.abs(of_samples).max() > 3000
    np.testing.assert_allclose(of_file, of_samples, atol=33)  # of 32768


def test_a_file_of_one_window_is_what_training_kept(tmp_path):
    for rate, num_samples in ((8000, 4000), (8000, 3000), (44100, 22050), (22050, 11100)):
        path = write(tmp_path / f"{rate}.wav", noise(num_samples), rate=rate)
        (piece,) = pieces_of_file(path, RECIPE, Cut())
        np.testing.assert_array_equal(piece.stored, RECIPE.compute(path))


def test_windows_lie_where_they_say():
    """A second of silence with one loud sample."""
    samples = np.zeros(10000)
    samples[6000] = 0.5
    pieces = list(pieces_of_samples(samples, 8000, RECIPE, Cut(hop=0.25)))
    assert [(piece.start, piece.end) for piece in pieces] == [(0, 0.5), (0.25, 0.75), (0.5, 1.0), (0.75, 1.25)]
    assert [np.flatnonzero(piece.stored).tolist() for piece in pieces] == [[], [], [2000], [0]]


@pytest.mark.parametrize(("pad", "second_half"), [("zero", np.zeros(2000)), ("repeat", np.arange(2000))])
def test_a_window_shorter_than_what_was_learnt_is_padded_as_in_training(pad, second_half):
    recipe = Recipe(kind="waveform", sample_rate=8000, seconds=0.5, pad=pad)
    first, second = windows_of(np.arange(4000, dtype=np.int16), recipe=recipe, window=0.25)
    np.testing.assert_array_equal(first, np.concatenate([np.arange(2000), second_half]))
    np.testing.assert_array_equal(second[:2000], np.arange(2000, 4000))


def test_the_end_of_a_short_recording_is_its_own():
    (piece,) = pieces_of_samples(np.zeros(800), 8000, RECIPE, Cut())
    assert (piece.start, piece.end) == (0, 0.1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"window": 0.0}, "window=0: wanted seconds, a number above 0"),
        ({"window": -1.0}, "window=-1: wanted seconds, a number above 0"),
        ({"hop": 1e-5}, "hop=1e-05: wanted seconds, a number above 0"),  # less than a sample
        ({"hop": float("nan")}, "hop=nan: wanted seconds"),
        ({"window": float("nan")}, "window=nan: wanted seconds"),
        ({"hop": float("inf")}, "hop=inf: wanted seconds"),
        ({"window": 0.6}, "window=0.6: the model was trained on 0.5 seconds; wanted no more than that"),
    ],
    ids=str,
)
def test_windows_that_cannot_be_are_refused(values, message):
    with pytest.raises(ConfigError) as caught:
        Cut(**values).check(RECIPE)
    assert str(caught.value).startswith(message)


def test_windows_that_can_be_are_taken():
    for values in ({}, {"window": 0.5}, {"hop": 1000.0}, {"window": 1 / 8000, "hop": 1 / 8000}):
        Cut(**values).check(RECIPE)
    assert Cut().samples(RECIPE) == (4000, 4000)
    assert Cut(window=0.1).samples(RECIPE) == (800, 800)
    assert Cut(window=0.1, hop=0.25).samples(RECIPE) == (800, 2000)


# ---------------------------------------------------------------------- where recordings come from


def test_a_folder_means_its_visible_audio_files_in_order(tmp_path):
    for name in (
        "b.WAV",
        "a.wav",
        "more/c.Flac",
        "phone.m4a",
        "._a.wav",
        ".hidden.wav",
        ".trash/d.wav",
        "__MACOSX/e.wav",
        "more/._c.flac",
        "notes.txt",
        "no suffix",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "folder.wav").mkdir()
    with recordings_of(str(tmp_path)) as names:
        assert list(names) == [tmp_path / name for name in ("a.wav", "b.WAV", "more/c.Flac", "phone.m4a")]
        assert list(names.values()) == list(map(str, names))


def test_a_visible_folder_below_a_hidden_one_is_looked_into(tmp_path):
    place = tmp_path / ".cache" / "sounds"
    place.mkdir(parents=True)
    (place / "a.wav").touch()
    with recordings_of(str(place)) as names:
        assert list(names) == [place / "a.wav"]


def test_a_file_is_taken_whatever_its_name(tmp_path):
    for name in ("a.wav", ".hidden", "notes.txt", "not there"):
        with recordings_of(str(tmp_path / name)) as names:
            assert names == {tmp_path / name: str(tmp_path / name)}


def test_an_empty_folder_is_refused(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataError, match=r"no audio files in .*; they end in .*\.wav"), recordings_of(str(tmp_path)):
        pass


def test_a_name_that_is_no_text_is_written_with_escapes(tmp_path):
    try:
        (tmp_path / "a\udcff.wav").write_bytes(b"")
    except (OSError, UnicodeError):
        pytest.skip("no such names here")
    with recordings_of(str(tmp_path)) as names:
        ((path, name),) = names.items()
    assert name.encode() == str(tmp_path).encode() + b"/a\\udcff.wav"
    with pytest.raises(DataError, match="not readable as audio"):
        audio.read(path, sample_rate=8000)


def test_what_comes_on_stdin_is_a_recording_for_as_long_as_it_is_needed(tmp_path, monkeypatch):
    content = write(tmp_path / "a.wav", noise(4000)).read_bytes()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    with recordings_of("-") as names:
        ((path, name),) = names.items()
        assert (name, path.read_bytes()) == ("-", content)
    assert not path.parent.exists()
