"""The one way audio is read: any libsndfile file to mono float32 at one rate and length."""

import functools
import logging
import math
import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np

from esc50.errors import DataError

log = logging.getLogger(__name__)

# Known audio that libsndfile has no decoder for: named in an error rather than passed over in silence.
OTHER_AUDIO_SUFFIXES = frozenset({".m4a", ".aac", ".mp4", ".wma", ".webm", ".amr", ".mka", ".ape", ".ac3"})
PADS = ("zero", "repeat")
# Programs that write to a pipe cannot know the length and put a huge number there; libsndfile reads to the end.
UNKNOWN_LENGTH = 0x7FFF0000
# Formats made of chunks, by their first four bytes and form: how a chunk begins, and the name of the one with samples.
CHUNKED = {
    (b"RIFF", b"WAVE"): ("<4sI", b"data"),
    (b"RIFX", b"WAVE"): (">4sI", b"data"),
    (b"FORM", b"AIFF"): (">4sI", b"SSND"),
    (b"FORM", b"AIFC"): (">4sI", b"SSND"),
}
LONGEST_OGG_PAGE = 27 + 255 + 255 * 255  # bytes (RFC 3533)
MARGIN_SECONDS = 0.1  # read past the cut, so that the resampler's edge falls outside the clip


def readable_suffixes() -> frozenset[str]:
    """Lower-case suffixes, with the dot, of the formats that the installed libsndfile reads."""
    import soundfile

    names = {f".{name.lower()}" for name in soundfile.available_formats()} - {".raw", ".mat4", ".mat5"}
    return frozenset(names | {".wave", ".aif", ".oga", ".opus"})


def read(path: str | Path, *, sample_rate: int, num_samples: int | None = None, pad: str = "zero", start: int = 0) -> np.ndarray:
    """Read a file as mono float32 `[time]` within -1..1 at `sample_rate` Hz.

    Channels are averaged, other rates are resampled with soxr (HQ), samples beyond full scale are clipped. With
    `num_samples` the clip is cut there, or padded as `fit_length` says; `start`, in samples at `sample_rate`, is where it
    begins: nothing but that part is read. The content decides the format, not the suffix. Raises DataError, naming file
    and reason, for anything that is not a whole, finite, non-empty recording.
    """
    import soundfile

    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    try:
        _check_length(path)
        with soundfile.SoundFile(path) as file:
            if file.frames > 2**62:  # a FLAC written to a pipe; libsndfile fails at its end
                raise DataError(f"{path}: the header does not say how long the recording is, write it again")
            rate, exact = file.samplerate, file.subtype == "PCM_16"
            first, ahead = _begin(start, rate, sample_rate)
            first = min(first, file.frames)
            frames = file.frames - first
            if num_samples is not None:
                frames = min(frames, math.ceil(((ahead + num_samples) / sample_rate + MARGIN_SECONDS) * rate))
            if first and file.seekable():
                file.seek(first)
            elif first:  # GSM 6.10 and such: decoded up to there
                file.read(first, dtype="int16")
            # Decoding 16-bit files to int16 and scaling here is several times faster than libsndfile's own scaling.
            data = file.read(max(0, frames), dtype="int16" if exact else "float32", always_2d=True)
    # TypeError: a file named .raw, whose rate nobody knows; UnicodeError: a name that is no UTF-8.
    except (RuntimeError, OSError, TypeError, UnicodeError) as error:
        raise DataError(
            f"{path}: not readable as audio ({_reason(error)}); libsndfile reads WAV, FLAC, OGG, MP3, AIFF"
            " and others, convert it to one of these"
        ) from None
    if len(data) == 0:
        raise DataError(f"{path}: holds no samples")
    if not exact and not np.isfinite(data).all():
        raise DataError(f"{path}: holds samples that are not finite")
    waveform = resample(
        to_mono(data.astype(np.float32) * np.float32(1 / 32768) if exact else data, name=str(path)),
        rate,
        sample_rate,
        name=str(path),
    )[ahead:]
    if len(waveform) == 0:
        raise DataError(f"{path}: nothing left from second {start / sample_rate:g} on")
    return waveform if num_samples is None else fit_length(waveform, num_samples, pad=pad)


def _begin(start: int, rate: int, sample_rate: int) -> tuple[int, int]:
    """Where to begin in a file at `rate` Hz for what begins at `start` at `sample_rate` Hz: its frame, a little earlier and
    such that both rates have a whole sample there, and by how many samples at `sample_rate` that is earlier."""
    if rate == sample_rate or start == 0:
        return start, 0
    divisor = math.gcd(rate, sample_rate)
    native, target = rate // divisor, sample_rate // divisor  # so many samples of both take the same time
    steps = max(0, math.floor(start / target - MARGIN_SECONDS * rate / native))
    return steps * native, start - steps * target


def resample(waveform: np.ndarray, rate: int, sample_rate: int, *, name: str) -> np.ndarray:
    """`[time]` at `rate` Hz to `[time]` at `sample_rate` Hz, within -1..1. Raises DataError where nothing is left."""
    import soxr

    if rate != sample_rate:
        waveform = soxr.resample(waveform, rate, sample_rate, quality="HQ").astype(np.float32, copy=False)
        if len(waveform) == 0:
            raise DataError(f"{name}: too short to resample from {rate} to {sample_rate} Hz")
    return np.clip(waveform, -1.0, 1.0)


def seconds_of(path: str | Path) -> float:
    """Length of a recording that `read` takes, from its header."""
    import soundfile

    with soundfile.SoundFile(path) as file:
        return file.frames / file.samplerate


def to_mono(data: np.ndarray, *, name: str) -> np.ndarray:
    """Average channels: `[time, channels]` to `[time]`. Warns where opposite phases cancel nearly all of the sound."""
    if data.shape[1] == 1:
        return np.ascontiguousarray(data[:, 0])
    mono = data.mean(axis=1, dtype=np.float32)
    before, after = float(np.mean(np.square(data, dtype=np.float64))), float(np.mean(np.square(mono, dtype=np.float64)))
    if before > 0 and after < 1e-4 * before:
        _warn_of_silence(name)
    return mono


@functools.lru_cache(maxsize=4096)  # once a recording, however many parts of it are read
def _warn_of_silence(name: str) -> None:
    log.warning("%s: the channels cancel each other, the mono sound is nearly silent", name)


def fit_length(waveform: np.ndarray, num_samples: int, *, pad: str = "zero") -> np.ndarray:
    """Cut `[time]` at `num_samples`, or lengthen it with zeros (`pad="zero"`) or by repetition (`pad="repeat"`)."""
    assert pad in PADS and len(waveform) > 0
    if len(waveform) >= num_samples:
        return waveform[:num_samples]
    if pad == "repeat":
        return np.resize(waveform, num_samples)
    return np.pad(waveform, (0, num_samples - len(waveform)))


def to_int16(waveform: np.ndarray) -> np.ndarray:
    """Float samples within -1..1 to int16, exact for what came from 16 bit."""
    return np.clip(np.rint(waveform * np.float32(32768)), -32768, 32767).astype(np.int16)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error).split(": ")[-1].rstrip(".")


def _check_length(path: Path) -> None:
    """Raise DataError where the header and the file disagree about the length: libsndfile would cut in silence."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(12)
        if chunked := CHUNKED.get((head[:4], head[8:])):
            whole = _chunks_fill(file, size, *chunked)
        else:
            whole = head[:4] != b"OggS" or _last_ogg_page_is_whole(file, size)
    if not whole:
        raise DataError(
            f"{path}: the header and the file size ({size} bytes) disagree about the length; the file is"
            " cut short or its header was never finished, write it again"
        )


def _chunks_fill(file: BinaryIO, size: int, layout: str, samples: bytes) -> bool:
    position, after_samples = 12, False
    while position + 8 <= size:
        file.seek(position)
        name, length = struct.unpack(layout, file.read(8))
        if not all(32 <= byte < 127 for byte in name):
            return after_samples and size - position <= size // 100  # a little padding behind them hurts nobody
        after_samples = after_samples or name == samples
        if name == samples and length >= UNKNOWN_LENGTH:
            return True
        position += 8 + length + length % 2
        if position > size + 1:
            return False
    return True


def _last_ogg_page_is_whole(file: BinaryIO, size: int) -> bool:
    file.seek(max(0, size - LONGEST_OGG_PAGE))
    tail = file.read()
    page = tail[tail.rfind(b"OggS") :]
    return len(page) >= 27 and len(page) >= 27 + page[26] + sum(page[27 : 27 + page[26]])
