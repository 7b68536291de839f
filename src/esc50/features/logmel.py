"""The one definition of the log-mel spectrogram: a function on the CPU and a module on any device, proven equal."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

AMIN = 1e-10  # power below this is silence; keeps the logarithm finite
REFERENCES = ("full_scale", "clip")


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
        import librosa

        return librosa.mel_frequencies(n_mels=self.n_mels + 2, fmin=self.f_min, fmax=self.f_max)[1:-1]


@lru_cache(maxsize=8)
def _mel_basis(spec: LogMelSpec):
    """The mel filters as a sparse matrix `[mel, bins]`: each band touches a few bins only, which makes the product cheap."""
    import librosa
    from scipy.sparse import csr_matrix

    return csr_matrix(librosa.filters.mel(sr=spec.sample_rate, n_fft=spec.n_fft, n_mels=spec.n_mels, fmin=spec.f_min,
                                          fmax=spec.f_max, htk=False, norm="slaney", dtype=np.float32))


def log_mel(waveform: np.ndarray, spec: LogMelSpec) -> np.ndarray:
    """Log-mel spectrogram of one clip on the CPU (librosa): `[time]` float32 to `[mel, frames]` float32 in dB."""
    import librosa

    bins = librosa.stft(waveform, n_fft=spec.n_fft, win_length=spec.win_length, hop_length=spec.hop_length,
                        window="hann", center=True, pad_mode="constant")
    power = np.square(bins.real) + np.square(bins.imag)
    mel = np.maximum(_mel_basis(spec) @ power, AMIN)
    decibels = 10 * np.log10(mel)
    if spec.reference == "clip":
        peak = decibels.max()
        decibels = decibels - peak if peak > 10 * np.log10(AMIN) + 1e-3 else np.full_like(decibels, spec.db_min)
    return np.clip(decibels, spec.db_min, spec.db_max)


class LogMel(nn.Module):
    """`log_mel` for a batch on any device (torchaudio): `[batch, time]` to `[batch, 1, mel, frames]` in dB.

    Always float32, also under autocast: powers of half-precision samples overflow or vanish.
    """

    def __init__(self, spec: LogMelSpec):
        super().__init__()
        from torchaudio.transforms import MelSpectrogram

        self.spec = spec
        self.mel = MelSpectrogram(sample_rate=spec.sample_rate, n_fft=spec.n_fft, win_length=spec.win_length,
                                  hop_length=spec.hop_length, n_mels=spec.n_mels, f_min=spec.f_min, f_max=spec.f_max,
                                  mel_scale="slaney", norm="slaney", center=True, pad_mode="constant", power=2.0)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            decibels = 10 * torch.log10(self.mel(x.float()).clamp_min(AMIN))
            if self.spec.reference == "clip":
                peak = decibels.amax(dim=(-2, -1), keepdim=True)
                silent = peak <= 10 * np.log10(AMIN) + 1e-3
                decibels = torch.where(silent, self.spec.db_min, decibels - peak)
            return decibels.clamp(self.spec.db_min, self.spec.db_max).unsqueeze(1)


def to_levels(decibels: np.ndarray, spec: LogMelSpec) -> np.ndarray:
    """dB `[mel, frames]` to grey levels, uint8: 0 is `db_min`, 255 is `db_max`."""
    return np.rint((decibels - spec.db_min) * (255 / (spec.db_max - spec.db_min))).astype(np.uint8)


def to_decibels(levels: np.ndarray, spec: LogMelSpec) -> np.ndarray:
    """Grey levels back to dB, float32 in the same shape; exact to half a grey level."""
    return levels.astype(np.float32) * ((spec.db_max - spec.db_min) / 255) + spec.db_min
