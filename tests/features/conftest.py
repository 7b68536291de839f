"""Small recordings and recipes for the tests of features."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from esc50.data.clip import Clip
from esc50.features.logmel import LogMelSpec
from esc50.features.recipe import Recipe

RATE = 8000  # Hz
SECONDS = 0.4


@pytest.fixture
def make_recipe() -> Callable[..., Recipe]:
    """Makes small recipes: `make_recipe("waveform", seconds=1.0)`; `mel` holds changes of the log-mel spectrogram."""

    def make(kind: str = "mel_png", *, mel: dict | None = None, **changes) -> Recipe:
        spec = {
            "sample_rate": RATE,
            "n_fft": 512,
            "win_length": 400,
            "hop_length": 80,
            "n_mels": 16,
            "f_min": 0.0,
            "f_max": 4000.0,
            "db_min": -70.0,
            "db_max": 40.0,
        } | (mel or {})
        return Recipe(
            **(
                {"kind": kind, "sample_rate": RATE, "seconds": SECONDS, "mel": None if kind == "waveform" else LogMelSpec(**spec)}
                | changes
            )
        )

    return make


@pytest.fixture
def make_clips(tmp_path) -> Callable[..., tuple[Clip, ...]]:
    """Writes noises of different colour and loudness, 16 bit, into `tmp_path`/data/audio and returns their clips."""

    def make(count: int, *, seconds: float = SECONDS) -> tuple[Clip, ...]:
        folder = tmp_path / "data" / "audio"
        folder.mkdir(parents=True, exist_ok=True)
        return tuple(_write(folder / f"clip{number}.wav", number, seconds) for number in range(count))

    return make


def _write(path: Path, number: int, seconds: float) -> Clip:
    noise = np.random.default_rng(number).normal(0.0, 0.02 * (number + 1), round(seconds * RATE))
    soundfile.write(path, np.convolve(noise, np.ones(number + 1) / (number + 1), "same"), RATE, subtype="PCM_16")
    return Clip(
        filename=path.name, path=path, target=number % 2, category=f"class{number % 2}", fold=number % 5 + 1, source=str(number)
    )
