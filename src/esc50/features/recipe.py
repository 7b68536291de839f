"""What one clip becomes before it is kept: grey levels of its log-mel spectrogram, or its samples."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from esc50.data import audio
from esc50.features.logmel import LogMelSpec, log_mel, to_levels

FORMAT = 1  # raise when the meaning of stored values changes, so that old stores are not read
SHORT = 0.01  # the share of the length that may be padded without a word


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a recording becomes features; the same object serves the store, training and prediction.

    `kind`: `mel_png` keeps log-mel images, `waveform` keeps samples, `logmel` keeps samples and computes the log-mel on
    the device. `sample_rate` in Hz, `seconds` the length every clip is cut or padded to, `pad` how (zero or repeat).
    """

    kind: str
    sample_rate: int
    seconds: float
    pad: str = "zero"
    mel: LogMelSpec | None = None

    @property
    def num_samples(self) -> int:
        return round(self.seconds * self.sample_rate)

    @property
    def keeps_images(self) -> bool:
        """Whether images are kept (mel_png) or samples (waveform, logmel)."""
        return self.kind == "mel_png"

    @property
    def log_mel(self) -> LogMelSpec:
        """The log-mel spectrogram of `mel_png` and `logmel`, which have one always."""
        assert self.mel is not None
        return self.mel

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Shape of one kept clip: `[mel, frames]` or `[time]`."""
        if self.keeps_images:
            return self.log_mel.n_mels, self.log_mel.num_frames(self.num_samples)
        return (self.num_samples,)

    @property
    def stored_dtype(self) -> np.dtype:
        return np.dtype(np.uint8 if self.keeps_images else np.int16)

    def compute(self, path: str | Path) -> np.ndarray:
        """Read a file and return what is kept of it. Raises DataError as `audio.read` does."""
        return self.from_waveform(self.read(path))

    def read(self, path: str | Path) -> np.ndarray:
        """The file as `[time]` float32 at this rate and length."""
        return audio.read(path, sample_rate=self.sample_rate, num_samples=self.num_samples, pad=self.pad)

    def is_short(self, path: str | Path) -> bool:
        """Whether the recording lacks more than 1 % of the length, so that padding is a part of what is kept."""
        return audio.seconds_of(path) < (1 - SHORT) * self.seconds

    def from_waveform(self, waveform: np.ndarray) -> np.ndarray:
        """`[time]` float32 to uint8 `[mel, frames]` (low frequencies first) or int16 `[time]`."""
        if self.keeps_images:
            return to_levels(log_mel(waveform, self.log_mel), self.log_mel)
        return audio.to_int16(waveform)

    def parameters(self) -> dict:
        """All that shapes the kept values, as plain data. `logmel` keeps the same samples as `waveform`."""
        kept = asdict(self) | {"format": FORMAT}
        if not self.keeps_images:
            kept |= {"kind": "waveform", "mel": None}
        return _alike(kept)

    def key(self) -> str:
        """Name of the store for these parameters."""
        text = json.dumps(self.parameters(), sort_keys=True)
        return f"{self.parameters()['kind']}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _alike(parameters: dict) -> dict:
    """Numbers that are equal written alike: 5.0 as 5."""
    return {
        key: _alike(value)
        if isinstance(value, dict)
        else int(value)
        if isinstance(value, float) and value.is_integer()
        else value
        for key, value in parameters.items()
    }
