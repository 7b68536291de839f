"""Measure one audio file as it lies on disk: length, level, silence, clipping, broken samples, identity."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from esc50.data.audio import read
from esc50.errors import DataError

if TYPE_CHECKING:
    from soundfile import SoundFile

SILENCE_DBFS = -60.0  # a peak below this is silence
QUIET_SECONDS = 0.01  # the windows whose peaks decide how much of a clip is silent
# So many samples in a row at full scale are a cut wave crest; a clean loud tone rarely has more than three there.
CLIPPED_RUN = 5
BLOCK_SECONDS = 10  # read at a time, so that an hour-long recording needs no more memory than a short one
CANCELLED_RATIO = 1e-4  # energy left after averaging the channels, below which they cancel each other


@dataclass(frozen=True, kw_only=True)
class AudioFacts:
    """What one file holds. `refusal` says why the project's reader does not take it; the rest is then as far as known.

    `num_samples` counts per channel, `peak` is the largest finite magnitude (1 is full scale), `silent_share` is the
    part of the 10 ms windows whose peak is below -60 dBFS. `bytes_hash` identifies the file, `content_hash` the decoded
    samples (with rate and channels, without digital silence at the end; None where there is nothing else).
    """

    bytes_hash: str | None = None
    content_hash: str | None = None
    encoding: str = ""
    sample_rate: int = 0
    channels: int = 0
    num_samples: int = 0
    num_non_finite: int = 0
    peak: float = 0.0
    silent_share: float = 0.0
    is_clipped: bool = False
    channels_cancel: bool = False
    refusal: str | None = None

    @property
    def seconds(self) -> float:
        """Length of the recording."""
        return self.num_samples / self.sample_rate if self.sample_rate else 0.0

    @property
    def is_silent(self) -> bool:
        """Whether the whole clip stays below -60 dBFS; an empty or a broken one is not called silent."""
        return self.num_samples > 0 and self.num_non_finite == 0 and self.peak < silence_peak()


def silence_peak() -> float:
    """The magnitude of -60 dBFS."""
    return 10 ** (SILENCE_DBFS / 20)


def measure(path: str | Path, *, sample_rate: int | None = None) -> AudioFacts:
    """Measure a file of any length, block by block. A file that cannot be read is a fact (`refusal`), not an error.

    `sample_rate` (Hz) is the rate that the project will read at; by default the file's own.
    """
    import soundfile

    path = Path(path)
    facts: dict[str, Any] = {}
    failure = None
    try:
        with path.open("rb") as file:
            facts["bytes_hash"] = hashlib.file_digest(file, "blake2b").hexdigest()
        with soundfile.SoundFile(path) as file:
            facts |= _measure_samples(file)
    except (OSError, RuntimeError, TypeError) as error:  # what soundfile raises: see audio.read
        failure = f"not readable to its end ({str(error).removeprefix('Error : ').rstrip('.')})"
    refusal = _refusal(path, sample_rate=sample_rate or facts.get("sample_rate", 44100))
    return AudioFacts(**facts, refusal=refusal or failure)


def _refusal(path: Path, *, sample_rate: int) -> str | None:
    """Why the project's own reader refuses the file: it checks more than libsndfile does. Decodes little."""
    try:
        read(path, sample_rate=sample_rate, num_samples=1)
    except DataError as error:
        return str(error).removeprefix(f"{path}: ")
    return None


def _measure_samples(file: "SoundFile") -> dict[str, Any]:
    rate, channels = file.samplerate, file.channels
    window = max(1, round(rate * QUIET_SECONDS))
    full_scale = 1 - 2.0 ** -(7 if file.subtype in {"PCM_U8", "PCM_S8"} else 15)
    runs = _Runs(full_scale, channels)
    content = _ContentHash(f"{rate} {channels}")
    num_samples = num_non_finite = num_windows = num_quiet = 0
    peak = energy = mono_energy = 0.0
    for block in _blocks(file, window * round(BLOCK_SECONDS / QUIET_SECONDS)):
        content.update(block)
        num_samples += len(block)
        broken = ~np.isfinite(block)
        if broken.any():
            num_non_finite += int(broken.sum())
            block = np.where(broken, np.float32(0), block)
        loudest = np.abs(block).max(axis=1)
        peak = max(peak, float(loudest.max()))
        windows = np.maximum.reduceat(loudest, np.arange(0, len(loudest), window))
        num_windows += len(windows)
        num_quiet += int((windows < silence_peak()).sum())
        runs.update(block)
        if channels > 1:
            energy += float(np.square(block).mean(axis=1).sum(dtype=np.float64))
            mono_energy += float(np.square(block.mean(axis=1)).sum(dtype=np.float64))
    return {
        "encoding": f"{file.format} {file.subtype}",
        "sample_rate": rate,
        "channels": channels,
        "num_samples": num_samples,
        "num_non_finite": num_non_finite,
        "peak": peak,
        "silent_share": num_quiet / num_windows if num_windows else 0.0,
        # Floats may exceed full scale and are cut there when read; decoders of lossy formats overshoot harmlessly.
        "is_clipped": runs.found or (file.subtype in {"FLOAT", "DOUBLE"} and peak > 1.0),
        "channels_cancel": energy > 0 and mono_energy < CANCELLED_RATIO * energy,
        "content_hash": content.digest(),
    }


def _blocks(file: "SoundFile", num_samples: int) -> Iterator[np.ndarray]:
    while len(block := file.read(num_samples, dtype="float32", always_2d=True)):
        yield block


class _Runs:
    """Finds CLIPPED_RUN samples in a row at full scale in one channel, also across the edge of two blocks."""

    def __init__(self, full_scale: float, channels: int):
        self.found = False
        self._full_scale = np.float32(full_scale)
        self._tail = np.zeros((0, channels), dtype=bool)

    def update(self, block: np.ndarray) -> None:
        at_limit = np.concatenate([self._tail, np.abs(block) >= self._full_scale])
        self._tail = at_limit[1 - CLIPPED_RUN :]
        if self.found or not at_limit.any() or len(at_limit) < CLIPPED_RUN:
            return
        run = at_limit[: len(at_limit) - CLIPPED_RUN + 1].copy()
        for shift in range(1, CLIPPED_RUN):
            run &= at_limit[shift : len(run) + shift]
        self.found = bool(run.any())


class _ContentHash:
    """Hash of samples that ignores zeros at the end: they are kept back until a sound follows."""

    def __init__(self, head: str):
        self._hash = hashlib.blake2b(head.encode(), digest_size=32)
        self._held_back = 0
        self._has_sound = False

    def update(self, block: np.ndarray) -> None:
        sounding = np.flatnonzero(block.any(axis=1))
        if len(sounding) == 0:
            self._held_back += block.nbytes
            return
        end = int(sounding[-1]) + 1
        self._has_sound = True
        while self._held_back:
            size = min(self._held_back, 2**20)
            self._hash.update(bytes(size))
            self._held_back -= size
        self._hash.update(np.ascontiguousarray(block[:end] + np.float32(0)).data)  # adding 0 turns -0.0 into 0.0
        self._held_back = block[end:].nbytes

    def digest(self) -> str | None:
        return self._hash.hexdigest() if self._has_sound else None
