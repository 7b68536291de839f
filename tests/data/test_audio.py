"""Reading audio: every sound file becomes the same mono float32 samples, or one line that says why not."""

import logging
import os
import struct
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import soundfile

from esc50.data import audio
from esc50.errors import DataError

RATE = 44100


def tones(rate: int, *, seconds: float = 1.0, frequencies: tuple[int, ...] = (220, 1000, 7040)) -> np.ndarray:
    """The same sound at any rate, computed and not resampled: float64 `[time]`, peak below 0.9."""
    time = np.arange(round(seconds * rate)) / rate
    return sum(0.29 * np.sin(2 * np.pi * frequency * time) for frequency in frequencies)


def write(path: Path, samples: np.ndarray, *, rate: int = RATE, subtype: str = "PCM_16", **format_: str) -> Path:
    soundfile.write(path, samples, rate, subtype=subtype, **format_)
    return path


def wav_bytes(samples: np.ndarray, *, data_size: int | None = None, tail: bytes = b"") -> bytes:
    """A 16-bit mono WAV, whose data chunk may claim another size than it has."""
    data = np.rint(samples * 32767).astype("<i2").tobytes()
    fmt = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16)
    body = fmt + struct.pack("<4sI", b"data", len(data) if data_size is None else data_size) + data + tail
    return struct.pack("<4sI4s", b"RIFF", 4 + len(body), b"WAVE") + body


@contextmanager
def refused(path: Path, match: str):
    with pytest.raises(DataError, match=match) as caught:
        yield
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_48_khz_stereo_equals_the_mono_original(tmp_path):
    original = audio.read(write(tmp_path / "mono.wav", tones(RATE)), sample_rate=RATE)
    side = tones(48000, frequencies=(500,))
    stereo = np.stack([tones(48000) + side, tones(48000) - side], axis=1) / 2
    read = 2 * audio.read(write(tmp_path / "stereo.wav", stereo, rate=48000), sample_rate=RATE)
    assert len(read) == len(original) == RATE
    inside = slice(1000, -1000)  # a resampler sees silence beyond both ends
    np.testing.assert_allclose(read[inside], original[inside], atol=5e-4)
    assert np.corrcoef(read, original)[0, 1] > 0.9999


@pytest.mark.parametrize(
    ("subtype", "step"),
    [("PCM_U8", 2**-7), ("PCM_16", 2**-15), ("PCM_24", 2**-23), ("PCM_32", 2**-23), ("FLOAT", 2**-23), ("DOUBLE", 2**-23)],
)
def test_all_sample_formats_read_alike(tmp_path, subtype, step):
    read = audio.read(write(tmp_path / "a.wav", tones(RATE), subtype=subtype), sample_rate=RATE)
    assert read.dtype == np.float32
    np.testing.assert_allclose(read, tones(RATE), atol=1.01 * step)


@pytest.mark.parametrize(
    ("format_", "subtype"),
    [
        ("WAVEX", "PCM_16"),
        ("RF64", "PCM_16"),
        ("W64", "PCM_16"),
        ("AIFF", "PCM_16"),
        ("FLAC", "PCM_24"),
        ("CAF", "FLOAT"),
        ("AU", "PCM_16"),
    ],
)
def test_the_content_decides_the_format_not_the_suffix(tmp_path, format_, subtype):
    if format_ not in soundfile.available_formats():
        pytest.skip(f"this libsndfile has no {format_}")
    read = audio.read(write(tmp_path / "a.wav", tones(RATE), format=format_, subtype=subtype), sample_rate=RATE)
    np.testing.assert_allclose(read, tones(RATE), atol=2**-15)


@pytest.mark.parametrize(("format_", "subtype"), [("MP3", "MPEG_LAYER_III"), ("OGG", "VORBIS")])
def test_lossy_files_named_wav_are_read(tmp_path, format_, subtype):
    if format_ not in soundfile.available_formats():
        pytest.skip(f"this libsndfile has no {format_}")
    read = audio.read(write(tmp_path / "a.wav", tones(RATE), format=format_, subtype=subtype), sample_rate=RATE)
    assert len(read) == RATE
    assert np.corrcoef(read, tones(RATE))[0, 1] > 0.99


@pytest.mark.parametrize("subtype", ["GSM610", "IMA_ADPCM", "ULAW"])  # the first of them cannot seek
@pytest.mark.parametrize("num_samples", [None, RATE // 2])
def test_the_codecs_of_telephones_are_read(tmp_path, subtype, num_samples):
    path = write(tmp_path / "a.wav", tones(RATE, frequencies=(440,)), subtype=subtype)
    read = audio.read(path, sample_rate=RATE, num_samples=num_samples)
    assert 0 <= len(read) - (num_samples or RATE) < 1000  # they work in blocks
    assert np.corrcoef(read[:20000], tones(RATE, frequencies=(440,))[:20000])[0, 1] > 0.95


def test_samples_beyond_full_scale_are_clipped(tmp_path):
    loud = 2 * tones(RATE, frequencies=(100,)) / 0.29
    read = audio.read(write(tmp_path / "a.wav", loud, subtype="FLOAT"), sample_rate=RATE)
    np.testing.assert_array_equal(read, np.clip(loud.astype(np.float32), -1, 1))
    assert read.max() == 1 and read.min() == -1


def test_every_16_bit_value_survives_the_round_trip(tmp_path):
    values = np.arange(-32768, 32768, dtype=np.int16)
    read = audio.read(write(tmp_path / "a.wav", values), sample_rate=RATE)
    np.testing.assert_array_equal(audio.to_int16(read), values)
    between = np.float32([-1.0, 1.0, 2.0, -2.0, 0.6 / 32768, -0.6 / 32768])
    assert audio.to_int16(between).tolist() == [-32768, 32767, 32767, -32768, 1, -1]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.wav", b""),
        ("page.wav", b"<!DOCTYPE html><html><body>404 Not Found</body></html>"),
        ("pointer.wav", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 441044\n"),
        ("iTunes.m4a", b"\0\0\0\x20ftypM4A \0\0\0\0M4A mp42isom\0\0\0\0" + bytes(range(256)) * 8),
        ("samples.raw", bytes(range(256)) * 8),
    ],
)
def test_what_is_not_audio_is_refused_with_the_way_out(tmp_path, name, content):
    path = tmp_path / name
    with refused(path, "no such file"):
        audio.read(path, sample_rate=RATE)
    path.write_bytes(content)
    with refused(path, r"not readable as audio \(.+\); libsndfile reads WAV, FLAC.*convert it"):
        audio.read(path, sample_rate=RATE)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_refused(tmp_path):
    path = write(tmp_path / "a.wav", tones(RATE))
    path.chmod(0)
    with refused(path, "Permission denied"):
        audio.read(path, sample_rate=RATE)


@pytest.mark.parametrize(
    "header",
    [
        {"data_size": 0xFFFFFFFF},
        {"data_size": 0x7FFFFFFF},  # written to a pipe
        {"tail": b"id3 \x03\0\0\0abc\0LIST\xd0\x07\0\0" + bytes(2000)},
        {"tail": b"\0" * 20},
    ],
    ids=str,
)
def test_wav_files_with_harmless_headers_are_read_whole(tmp_path, header):
    path = tmp_path / "a.wav"
    path.write_bytes(wav_bytes(tones(RATE), **header))
    np.testing.assert_allclose(audio.read(path, sample_rate=RATE)[:RATE], tones(RATE), atol=2**-14)


@pytest.mark.parametrize("data_size", [0, 1000, 2 * RATE - 2000, 2 * RATE + 2, 4 * RATE])
def test_a_wav_header_that_contradicts_the_file_is_refused(tmp_path, data_size):
    path = tmp_path / "a.wav"
    path.write_bytes(wav_bytes(tones(RATE), data_size=data_size))
    with refused(path, "header and the file size .* disagree about the length"):
        audio.read(path, sample_rate=RATE)


@pytest.mark.parametrize("kept", [0.1, 0.6, 0.95])
@pytest.mark.parametrize(
    ("format_", "subtype"), [("WAV", "PCM_16"), ("AIFF", "PCM_16"), ("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("CAF", "PCM_16")]
)
def test_a_file_cut_short_is_refused(tmp_path, format_, subtype, kept):
    path = write(tmp_path / f"a.{format_.lower()}", tones(RATE), format=format_, subtype=subtype)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    with refused(path, "disagree about the length|not readable as audio"):
        audio.read(path, sample_rate=RATE)


def test_a_flac_that_does_not_know_its_length_is_refused(tmp_path):
    path = write(tmp_path / "a.flac", tones(RATE))
    content = bytearray(path.read_bytes())
    content[21] &= 0xF0  # the last 36 bits before the checksum of STREAMINFO count the samples
    content[22:26] = bytes(4)
    path.write_bytes(content)
    with refused(path, "does not say how long"):
        audio.read(path, sample_rate=RATE)


@pytest.mark.parametrize("bad", [[np.nan, 0], [np.inf, 0], [np.inf, -np.inf], [1e300, 0]], ids=str)
def test_samples_that_are_not_finite_are_refused(tmp_path, bad):
    samples = np.zeros((100, 2))
    samples[50] = bad
    path = write(tmp_path / "a.wav", samples, subtype="DOUBLE")
    with refused(path, "not finite"):
        audio.read(path, sample_rate=RATE)


@pytest.mark.parametrize(("length", "rate", "match"), [(0, RATE, "no samples"), (1, 96000, "too short to resample")])
def test_a_file_without_a_single_sample_to_give_is_refused(tmp_path, length, rate, match):
    path = write(tmp_path / "a.wav", np.full(length, 0.5), rate=rate)
    with refused(path, match):
        audio.read(path, sample_rate=RATE, num_samples=100)


@pytest.mark.parametrize("length", [1, 2, 882])  # 882 samples are 20 ms
def test_very_short_clips_are_padded(tmp_path, length):
    samples = np.linspace(0.5, -0.5, length)
    path = write(tmp_path / "a.wav", samples, subtype="FLOAT")
    zero = audio.read(path, sample_rate=RATE, num_samples=1000)
    repeat = audio.read(path, sample_rate=RATE, num_samples=1000, pad="repeat")
    np.testing.assert_allclose(zero, np.concatenate([samples, np.zeros(1000 - length)]), atol=1e-7)
    np.testing.assert_allclose(repeat, np.tile(samples, 1000)[:1000], atol=1e-7)


def test_fitting_cuts_pads_and_repeats():
    clip = np.float32([1, 2, 3])
    assert audio.fit_length(clip, 2).tolist() == [1, 2]
    assert audio.fit_length(clip, 3).tolist() == [1, 2, 3]
    assert audio.fit_length(clip, 5).tolist() == [1, 2, 3, 0, 0]
    assert audio.fit_length(clip, 7, pad="repeat").tolist() == [1, 2, 3, 1, 2, 3, 1]
    assert clip.tolist() == [1, 2, 3]


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000, 96000])
def test_reading_only_what_is_needed_changes_nothing(tmp_path, rate):
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, 3 * rate)
    path = write(tmp_path / "a.wav", noise, rate=rate)
    part = audio.read(path, sample_rate=RATE, num_samples=RATE)
    np.testing.assert_allclose(part, audio.read(path, sample_rate=RATE)[:RATE], atol=1e-6)


@pytest.mark.parametrize(("right", "warns"), [(-1.0, True), (-0.999, True), (-0.5, False), (0.0, False), (1.0, False)])
def test_channels_that_cancel_each_other_are_reported(tmp_path, caplog, right, warns):
    left = tones(RATE)
    path = write(tmp_path / "a.wav", np.stack([left, right * left], axis=1))
    with caplog.at_level(logging.WARNING):
        for start in (0, 100, 200):  # once a recording
            audio.read(path, sample_rate=RATE, start=start)
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: the channels cancel each other, the mono sound is nearly silent"
    ] * warns


def test_digital_silence_is_read_without_a_warning(tmp_path, caplog):
    read = audio.read(write(tmp_path / "a.wav", np.zeros((RATE, 2))), sample_rate=16000)
    assert not read.any() and not caplog.records


@pytest.mark.parametrize(
    "name",
    [
        "a b;c.wav",
        "$(touch x).wav",
        "épée 犬.wav",
        "epoch=3-step=4.wav",
        "[1]{2}.wav",
        "A.WAV",
        "'\".wav",
        "-rf.wav",
        "no suffix",
        "a.tar: b.wav",
    ],
)
def test_odd_names_are_just_names(tmp_path, name):
    path = write(tmp_path / name, tones(RATE), format="WAV")
    assert len(audio.read(path, sample_rate=RATE)) == RATE
    path.write_bytes(b"")
    with refused(path, r"\(Format not recognised\)"):
        audio.read(path, sample_rate=RATE)


def test_the_formats_that_users_have_are_known():
    assert {".wav", ".flac", ".ogg", ".mp3", ".aiff", ".aif", ".opus"} <= audio.readable_suffixes()
    assert not audio.readable_suffixes() & audio.OTHER_AUDIO_SUFFIXES


def test_real_clips_of_odd_lengths_come_out_as_five_seconds(shared):
    lengths = {path: soundfile.info(path).frames for path in sorted((shared / "esc10" / "audio").glob("*.ogg"))}
    odd = {path: length for path, length in lengths.items() if length != 220544}
    assert len(lengths) == 400 and {160704, 223808, 224960} <= set(odd.values())
    for path, length in [*odd.items(), next(iter(lengths.items()))]:
        clip = audio.read(path, sample_rate=RATE, num_samples=220500)
        assert clip.shape == (220500,) and clip.any()
        assert not clip[length:].any()
