"""What a model is given: recordings of any length, as files or as samples, cut into windows of the length it learnt."""

import contextlib
import math
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from esc50.data import audio
from esc50.errors import ConfigError, DataError
from esc50.features.recipe import SHORT, Recipe

STDIN = "-"
MOST_CHANNELS = 32  # more would be an array that lies on its side
FULL_SCALE = {"int16": 2.0**15, "int32": 2.0**31}


@dataclass(frozen=True, kw_only=True)
class Cut:
    """How long recordings are cut: a window of `window` seconds every `hop` seconds. None of either stands for the length
    that the model learnt, and for windows that touch."""

    window: float | None = None
    hop: float | None = None

    def check(self, recipe: Recipe) -> None:
        """Raise ConfigError where the model cannot take such windows."""
        for name, value in (("window", self.window), ("hop", self.hop)):
            if value is not None and not 1 <= value * recipe.sample_rate < math.inf:
                raise ConfigError(f"{name}={value:g}: wanted seconds, a number above 0")
        if self.window is not None and self.window > recipe.seconds:
            raise ConfigError(
                f"window={self.window:g}: the model was trained on {recipe.seconds:g} seconds; wanted no more than that"
            )

    def samples(self, recipe: Recipe) -> tuple[int, int]:
        """Window and hop in samples at the model's rate."""
        window = round((self.window or recipe.seconds) * recipe.sample_rate)
        return window, window if self.hop is None else max(1, round(self.hop * recipe.sample_rate))


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """A window of a recording: `start` and `end` in seconds, and what the recipe keeps of it, as in `Recipe.from_waveform`."""

    start: float
    end: float
    stored: np.ndarray


def window_starts(num_samples: int, *, window: int, hop: int) -> list[int]:
    """Where the windows of a recording begin, all in samples. One that is no longer than a window, give or take 1 %, is one
    window; the last window of a longer one ends with the recording, give or take as much, and nothing is padded."""
    if num_samples <= (1 + SHORT) * window:
        return [0]
    starts = list(range(0, num_samples - window + 1, hop))
    if num_samples - (starts[-1] + window) > SHORT * window:
        starts.append(num_samples - window)
    return starts


def pieces_of_file(path: Path, recipe: Recipe, cut: Cut) -> Iterator[Piece]:
    """The windows of a file, read one after the other, so that hours of sound need no more memory than seconds. A file of
    one window is read exactly as in training. Raises DataError as `audio.read`."""
    window, hop = cut.samples(recipe)
    waveform = _read(path, recipe, window, 0)
    seconds = audio.seconds_of(path)
    starts = window_starts(round(seconds * recipe.sample_rate), window=window, hop=hop)
    for start in starts:
        yield _piece(waveform if start == 0 else _read(path, recipe, window, start), recipe, start, window, seconds)


def pieces_of_samples(samples: np.ndarray, sample_rate: int, recipe: Recipe, cut: Cut) -> Iterator[Piece]:
    """The windows of samples `[time]` or `[time, channels]`, floating point within -1..1 or int16 or int32, at `sample_rate`
    Hz. Raises DataError where they are something else."""
    waveform = audio.resample(_mono(samples), sample_rate, recipe.sample_rate, name="the samples")
    window, hop = cut.samples(recipe)
    seconds = len(samples) / sample_rate
    for start in window_starts(len(waveform), window=window, hop=hop):
        part = audio.fit_length(waveform[start : start + window], window, pad=recipe.pad)
        yield _piece(part, recipe, start, window, seconds)


def _read(path: Path, recipe: Recipe, window: int, start: int) -> np.ndarray:
    return audio.read(path, sample_rate=recipe.sample_rate, num_samples=window, pad=recipe.pad, start=start)


def _piece(waveform: np.ndarray, recipe: Recipe, start: int, window: int, seconds: float) -> Piece:
    whole = audio.fit_length(waveform, recipe.num_samples, pad=recipe.pad)
    return Piece(
        start=start / recipe.sample_rate,
        end=min(seconds, (start + window) / recipe.sample_rate),
        stored=recipe.from_waveform(whole),
    )


def _mono(samples: np.ndarray) -> np.ndarray:
    if samples.ndim not in (1, 2) or (samples.ndim == 2 and not 1 <= samples.shape[1] <= MOST_CHANNELS):
        raise DataError(f"samples of shape {list(samples.shape)}: wanted [time] or [time, channels]")
    if len(samples) == 0:
        raise DataError("the samples are none at all; wanted one or more")
    if samples.dtype.name in FULL_SCALE:
        samples = samples / FULL_SCALE[samples.dtype.name]
    elif samples.dtype.kind != "f":
        raise DataError(f"samples of type {samples.dtype}: wanted floating point within -1 to 1, int16 or int32")
    with np.errstate(over="ignore"):  # what float32 cannot hold is said below
        samples = samples.astype(np.float32)
    if not np.isfinite(samples).all():
        raise DataError("samples that are not finite")
    return audio.to_mono(samples[:, None] if samples.ndim == 1 else samples, name="the samples")


@contextlib.contextmanager
def recordings_of(source: str) -> Iterator[dict[Path, str]]:
    """The recordings that `source` means, each with the name to call it by: a file itself; all visible audio files in and
    below a folder, in order; for `-` what comes on stdin. Raises DataError where there are none."""
    if source == STDIN:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "stdin"
            with path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            yield {path: STDIN}
    else:
        # A name that is no UTF-8 is written with its odd bytes escaped: streams refuse them.
        yield {path: str(path).encode("utf-8", "backslashreplace").decode() for path in _files_in(Path(source))}


def _files_in(source: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    suffixes = audio.readable_suffixes() | audio.OTHER_AUDIO_SUFFIXES  # of the latter it is said that they cannot be read
    paths = [
        path
        for path in sorted(source.rglob("*"))
        if path.suffix.lower() in suffixes
        and path.is_file()
        and not any(part.startswith((".", "__MACOSX")) for part in path.relative_to(source).parts)
    ]
    if not paths:
        raise DataError(f"no audio files in {source}; they end in {', '.join(sorted(audio.readable_suffixes()))}")
    return paths
