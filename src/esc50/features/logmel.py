"""The one definition of the log-mel spectrogram, on the CPU. Free of torch, whose import alone would double the memory of
precomputing; `device_logmel` is the same for tensors."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from esc50.features.mel import band_edges, hann_window, mel_filters

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

AMIN = 1e-10  # power below this is silence; keeps the logarithm finite
FRAMES_AT_A_TIME = 32


@dataclass(frozen=True, kw_only=True)
class LogMelSpec:
    """What shapes a log-mel spectrogram.

    `sample_rate`, `f_min`, `f_max` in Hz; `n_fft`, `win_length`, `hop_length` in samples. Mel bands follow Slaney's scale
    and area normalisation (librosa's defaults), the window is Hann, frames are centred with zeros beyond the ends.
    Decibels lie within `db_min`..`db_max` above `reference`: `full_scale` is librosa's ref=1.0, the same for every clip;
    `clip` is the loudest point of each clip (ref=np.max, as in the book, chapter 6), where silence stays at `db_min`.
    """

    sample_rate: int
    n_fft: int
    win_length: int
    hop_length: int
    n_mels: int
    f_min: float
    f_max: float
    db_min: float
    db_max: float
    reference: str = "full_scale"

    def num_frames(self, num_samples: int) -> int:
        """Frames of a clip of so many samples."""
        return 1 + num_samples // self.hop_length

    def mel_frequencies(self) -> np.ndarray:
        """Centre of each band in Hz, `[mel]`."""
        return band_edges(n_mels=self.n_mels, f_min=self.f_min, f_max=self.f_max)[1:-1]


@lru_cache(maxsize=8)
def _mel_basis(spec: LogMelSpec) -> "csr_matrix":
    """The mel filters as a sparse matrix `[mel, bins]`: each band touches a few bins only, which makes the product cheap."""
    from scipy.sparse import csr_matrix

    return csr_matrix(
        mel_filters(sample_rate=spec.sample_rate, n_fft=spec.n_fft, n_mels=spec.n_mels, f_min=spec.f_min, f_max=spec.f_max)
    )


@lru_cache(maxsize=8)
def _window(spec: LogMelSpec) -> np.ndarray:
    """Hann window of `win_length`, centred within `n_fft`."""
    return hann_window(spec.win_length, size=spec.n_fft)


def mel_power(waveform: np.ndarray, spec: LogMelSpec) -> np.ndarray:
    """Power in each mel band: `[time]` float32 to `[mel, frames]` float32, librosa's melspectrogram.

    The transform runs over a few frames at a time, which stay in the cache: several times faster than transforming the
    clip whole.
    """
    from scipy.fft import rfft

    padded = np.pad(waveform, spec.n_fft // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, spec.n_fft)[:: spec.hop_length]
    window, basis = _window(spec), _mel_basis(spec)
    mel = np.empty((spec.n_mels, len(frames)), dtype=np.float32)
    for start in range(0, len(frames), FRAMES_AT_A_TIME):
        bins = rfft(frames[start : start + FRAMES_AT_A_TIME] * window)
        power = np.square(bins.real) + np.square(bins.imag)
        mel[:, start : start + FRAMES_AT_A_TIME] = basis @ power.T
    return mel


def log_mel(waveform: np.ndarray, spec: LogMelSpec) -> np.ndarray:
    """Log-mel spectrogram of one clip on the CPU: `[time]` float32 to `[mel, frames]` float32 in dB."""
    decibels = mel_power(waveform, spec)
    # In place: memory that is new to the process costs more here than the arithmetic.
    np.log10(np.maximum(decibels, AMIN, out=decibels), out=decibels)
    decibels *= 10
    if spec.reference == "clip":
        peak = decibels.max()
        if peak > 10 * np.log10(AMIN) + 1e-3:
            decibels -= peak
        else:
            decibels.fill(spec.db_min)
    return np.clip(decibels, spec.db_min, spec.db_max, out=decibels)


def to_levels(decibels: np.ndarray, spec: LogMelSpec) -> np.ndarray:
    """dB `[mel, frames]` to grey levels, uint8: 0 is `db_min`, 255 is `db_max`."""
    levels = decibels - np.float32(spec.db_min)
    levels *= np.float32(255 / (spec.db_max - spec.db_min))
    return np.rint(levels, out=levels).astype(np.uint8)


def to_decibels(levels: np.ndarray, spec: LogMelSpec) -> np.ndarray:
    """Grey levels back to dB, float32 in the same shape; exact to half a grey level."""
    return levels.astype(np.float32) * ((spec.db_max - spec.db_min) / 255) + spec.db_min
