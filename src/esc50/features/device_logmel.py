"""The log-mel spectrogram of `logmel` as a module for batches on any device, proven equal."""

import numpy as np
import torch
from torch import Tensor, nn

from esc50.features.logmel import AMIN, LogMelSpec


class LogMel(nn.Module):
    """`log_mel` for a batch on any device (torchaudio): `[batch, time]` to `[batch, 1, mel, frames]` in dB.

    Always float32, also under autocast: powers of half-precision samples overflow or vanish.
    """

    def __init__(self, spec: LogMelSpec):
        super().__init__()
        from torchaudio.transforms import MelSpectrogram

        self.spec = spec
        self.mel = MelSpectrogram(
            sample_rate=spec.sample_rate,
            n_fft=spec.n_fft,
            win_length=spec.win_length,
            hop_length=spec.hop_length,
            n_mels=spec.n_mels,
            f_min=spec.f_min,
            f_max=spec.f_max,
            mel_scale="slaney",
            norm="slaney",
            center=True,
            pad_mode="constant",
            power=2.0,
        )

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            decibels = 10 * torch.log10(self.mel(x.float()).clamp_min(AMIN))
            if self.spec.reference == "clip":
                peak = decibels.amax(dim=(-2, -1), keepdim=True)
                silent = peak <= 10 * np.log10(AMIN) + 1e-3
                decibels = torch.where(silent, self.spec.db_min, decibels - peak)
            return decibels.clamp(self.spec.db_min, self.spec.db_max).unsqueeze(1)
