"""The mel scale and its filters: Slaney's, as librosa has them by default.

Its own few lines, held equal to librosa by a test, since importing librosa's filters takes a second of every command.
"""

import numpy as np

LINEAR_HZ = 200 / 3  # hertz of a mel, up to a kilohertz
BREAK_HZ = 1000.0
BREAK_MEL = BREAK_HZ / LINEAR_HZ
LOG_STEP = np.log(6.4) / 27  # natural logarithm of the ratio of frequencies a mel apart, above a kilohertz


def hz_to_mel(frequencies: np.ndarray | float) -> np.ndarray:
    """Slaney's scale (Auditory Toolbox, 1998): linear up to a kilohertz, logarithmic above."""
    hz = np.asarray(frequencies, dtype=np.float64)
    return np.where(hz < BREAK_HZ, hz / LINEAR_HZ, BREAK_MEL + np.log(np.maximum(hz, BREAK_HZ) / BREAK_HZ) / LOG_STEP)


def mel_to_hz(mels: np.ndarray | float) -> np.ndarray:
    """The same backwards, in Hz."""
    mel = np.asarray(mels, dtype=np.float64)
    return np.where(mel < BREAK_MEL, LINEAR_HZ * mel, BREAK_HZ * np.exp(LOG_STEP * (np.maximum(mel, BREAK_MEL) - BREAK_MEL)))


def band_edges(*, n_mels: int, f_min: float, f_max: float) -> np.ndarray:
    """Frequencies in Hz, `[n_mels + 2]`, evenly spaced in mels: band i rises from edge i to i + 1 and falls to i + 2."""
    return mel_to_hz(np.linspace(hz_to_mel(f_min), hz_to_mel(f_max), n_mels + 2))


def mel_filters(*, sample_rate: int, n_fft: int, n_mels: int, f_min: float, f_max: float) -> np.ndarray:
    """Triangular filters of equal area, float32 `[n_mels, bins]`, for power spectra of `n_fft` samples at `sample_rate` Hz."""
    edges = band_edges(n_mels=n_mels, f_min=f_min, f_max=f_max)
    bins = np.fft.rfftfreq(n_fft, 1 / sample_rate)
    slopes = edges[:, None] - bins
    widths = np.diff(edges)[:, None]
    triangles = np.maximum(0, np.minimum(-slopes[:-2] / widths[:-1], slopes[2:] / widths[1:])).astype(np.float32)
    triangles *= (2 / (edges[2:] - edges[:-2]))[:, None]
    return triangles


def hann_window(length: int, *, size: int) -> np.ndarray:
    """A periodic Hann window of `length` samples, centred within `size`, float32 `[size]`."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    before = (size - length) // 2
    return np.pad(window, (before, size - length - before)).astype(np.float32)
