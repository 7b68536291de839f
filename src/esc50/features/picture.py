"""A recording as a picture with axes: decibels, seconds and Hz, whatever the features of the model are."""

from dataclasses import dataclass

import numpy as np

from esc50.features.logmel import LogMelSpec, log_mel
from esc50.features.recipe import Recipe


@dataclass(frozen=True, kw_only=True, eq=False)
class Picture:
    """`decibels` `[mel, frames]`, low frequencies first; `seconds` from left to right; `frequencies` `[mel]`, the bands'
    centres in Hz; `floor` and `ceiling` in dB, the range of the scale."""

    decibels: np.ndarray
    seconds: float
    frequencies: np.ndarray
    floor: float
    ceiling: float


def drawn_log_mel(recipe: Recipe) -> LogMelSpec:
    """How a clip is drawn: by the recipe's own log-mel, or by this one where the features are samples and say nothing of
    spectrograms."""
    return recipe.mel or LogMelSpec(
        sample_rate=recipe.sample_rate,
        n_fft=2048,
        win_length=2048,
        hop_length=512,
        n_mels=64,
        f_min=0.0,
        f_max=recipe.sample_rate / 2,
        db_min=-70.0,
        db_max=40.0,
    )


def picture_of(waveform: np.ndarray, recipe: Recipe) -> Picture:
    """The picture of samples `[time]` at the recipe's rate, by the recipe's own log-mel where it has one."""
    mel = drawn_log_mel(recipe)
    return Picture(
        decibels=log_mel(waveform, mel),
        seconds=len(waveform) / recipe.sample_rate,
        frequencies=mel.mel_frequencies(),
        floor=mel.db_min,
        ceiling=mel.db_max,
    )
