"""Augmentations of waveforms `[batch, time]`: gain, shift, noise, polarity, echo, speed and pitch.

Modules that only draw what the functions of `sounds` do: the neutral parameter where the coin fails, and as many numbers
whatever the coins say, so that processes stay in step. In evaluation they return `x` itself, in training a new tensor.
"""

import math

from torch import Tensor, nn

from esc50.augment.draws import Draws
from esc50.augment.sounds import add_noise, echo, gain, pitch_shift, polarity, shift, speed, with_rows
from esc50.config.kinds import Positive, PositiveInt, Probability, Semitones, Share
from esc50.errors import ConfigError


class _PerExample(nn.Module):
    """What the modules share: each example is changed with `probability`."""

    def __init__(self, *, probability: Probability = 0.5):
        super().__init__()
        _check(self, 0 <= probability <= 1, "a probability within 0..1", probability)
        self.probability = probability

    def forward(self, x: Tensor, draws: Draws) -> Tensor:
        """`[batch, time]`, changed in training only."""
        return self._change(x, draws, draws.uniform(len(x)) < self.probability) if self.training else x

    def _change(self, x: Tensor, draws: Draws, coins: Tensor) -> Tensor:
        """Draw parameters for all, neutral ones where `coins` (bool `[batch]`, on the CPU) is false, and change `x`."""
        raise NotImplementedError


class Gain(_PerExample):
    """Louder or softer by a uniform number of decibels."""

    def __init__(self, *, min_db: float = -6.0, max_db: float = 6.0, probability: Probability = 1.0):
        super().__init__(probability=probability)
        _check(self, -math.inf < min_db <= max_db < math.inf, "min_db <= max_db", min_db, max_db)
        self.min_db, self.max_db = min_db, max_db

    def _change(self, x: Tensor, draws: Draws, coins: Tensor) -> Tensor:
        return gain(x, db=draws.uniform(len(x), low=self.min_db, high=self.max_db).where(coins, 0.0))


class Shift(_PerExample):
    """Roll in time, uniformly within `max_fraction` of the length, either way."""

    def __init__(self, *, max_fraction: Share = 1.0, probability: Probability = 1.0):
        super().__init__(probability=probability)
        _check(self, 0 <= max_fraction <= 1, "max_fraction within 0..1", max_fraction)
        self.max_fraction = max_fraction

    def _change(self, x: Tensor, draws: Draws, coins: Tensor) -> Tensor:
        most = int(self.max_fraction * x.shape[1])
        return shift(x, samples=draws.integers(len(x), low=-most, high=most).where(coins, 0))


class Noise(_PerExample):
    """White noise, at a signal-to-noise ratio that is uniform in decibels."""

    def __init__(self, *, min_snr_db: float = 10.0, max_snr_db: float = 40.0, probability: Probability = 0.5):
        super().__init__(probability=probability)
        _check(self, -math.inf < min_snr_db <= max_snr_db < math.inf, "min_snr_db <= max_snr_db", min_snr_db, max_snr_db)
        self.min_snr_db, self.max_snr_db = min_snr_db, max_snr_db

    def _change(self, x: Tensor, draws: Draws, coins: Tensor) -> Tensor:
        chosen = coins.nonzero().squeeze(1)
        snr_db = draws.uniform(len(x), low=self.min_snr_db, high=self.max_snr_db)[chosen]
        noise = draws.normal_like(x[: len(chosen)])
        return with_rows(x, chosen, lambda rows: add_noise(rows, noise, snr_db=snr_db))


class Polarity(_PerExample):
    """Turn the sign: microphones and cables do, ears do not hear it."""

    def _change(self, x: Tensor, draws: Draws, coins: Tensor) -> Tensor:
        return polarity(x, flip=coins)


class Echo(_PerExample):
    """`num_repeats` copies of the sound, each later by a delay and weaker by a decay, both uniform."""

    def __init__(
        self,
        *,
        sample_rate: PositiveInt,
        min_delay_seconds: Positive = 0.05,
        max_delay_seconds: Positive = 0.3,
        max_decay: Share = 0.5,
        num_repeats: PositiveInt = 1,
        probability: Probability = 0.5,
    ):
        super().__init__(probability=probability)
        _check(self, sample_rate > 0, "a sample_rate above 0 Hz", sample_rate)
        _check(
            self,
            0 < min_delay_seconds <= max_delay_seconds < math.inf,
            "0 < min_delay_seconds <= max_delay_seconds",
            min_delay_seconds,
            max_delay_seconds,
        )
        _check(
            self,
            0 <= max_decay <= 1 and num_repeats >= 1,
            "max_decay within 0..1 and num_repeats of 1 or more",
            max_decay,
            num_repeats,
        )
        self.min_delay, self.max_delay = min_delay_seconds * sample_rate, max_delay_seconds * sample_rate  # samples
        self.max_decay, self.num_repeats = max_decay, num_repeats

    def _change(self, x: Tensor, draws: Draws, coins: Tensor) -> Tensor:
        delay = draws.uniform(len(x), low=self.min_delay, high=self.max_delay).round().long().clamp_min(1)
        decay = draws.uniform(len(x), high=self.max_decay).where(coins, 0.0)
        return echo(x, delay=delay, decay=decay, num_repeats=self.num_repeats)


class Speed(_PerExample):
    """Faster (zeros follow) or slower (cut, from a uniform place on), at a log-uniform rate; pitch goes along."""

    def __init__(self, *, min_rate: Positive = 0.8, max_rate: Positive = 1.25, probability: Probability = 1.0):
        super().__init__(probability=probability)
        _check(self, 0 < min_rate <= max_rate < math.inf, "0 < min_rate <= max_rate", min_rate, max_rate)
        self.min_rate, self.max_rate = min_rate, max_rate

    def _change(self, x: Tensor, draws: Draws, coins: Tensor) -> Tensor:
        rate = draws.uniform(len(x), low=math.log(self.min_rate), high=math.log(self.max_rate)).exp().where(coins, 1.0)
        spare = (1 - rate).clamp_min(0) * x.shape[1]  # samples that a slower clip does not reach
        return speed(x, rate=rate, start=(draws.uniform(len(x)) * spare).floor())


class PitchShift(_PerExample):
    """Higher or lower by a uniform number of semitones, at the same pace; the costliest of the seven."""

    def __init__(self, *, sample_rate: PositiveInt, max_semitones: Semitones = 2.0, probability: Probability = 0.5):
        super().__init__(probability=probability)
        _check(self, sample_rate > 0, "a sample_rate above 0 Hz", sample_rate)
        _check(self, 0 <= max_semitones <= 24, "max_semitones within 0..24 (two octaves)", max_semitones)
        self.max_semitones = max_semitones
        self.n_fft = max(16, 2 ** round(math.log2(0.04 * sample_rate)))  # about 40 ms: tones are resolved, attacks too

    def _change(self, x: Tensor, draws: Draws, coins: Tensor) -> Tensor:
        semitones = draws.uniform(len(x), low=-self.max_semitones, high=self.max_semitones).where(coins, 0.0)
        return pitch_shift(x, semitones=semitones, n_fft=self.n_fft)


def _check(module: nn.Module, holds: bool, wanted: str, *given: float) -> None:
    if not holds:
        raise ConfigError(f"augmentation {type(module).__name__} wants {wanted}, not {' and '.join(map(str, given))}")
