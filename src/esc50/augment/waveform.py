"""Augmentations of waveforms `[batch, time]`: gain, shift, noise, polarity, echo, speed and pitch.

Pure functions, given one parameter an example (`[batch]`, best left on the CPU, moved as needed), and modules that only
draw. Functions leave an example with the neutral parameter (0 dB, rate 1, ...) exactly as it is; modules give that one
where the coin fails, and draw as many numbers whatever the coins say, so that processes stay in step. In evaluation
they return `x` itself, in training a new tensor. Nothing is limited to full scale.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from esc50.augment.draws import Draws
from esc50.errors import ConfigError

FRACTION_BITS = 24  # of the fixed-point positions in `speed`: float32 would be wrong by 1/64 sample after five seconds
CHUNK = 8192  # samples: intermediate results then fit the cache, five times faster on a CPU than whole clips
RISE = 4.0  # a frame with this many times the energy of the one a hop earlier is an onset


def gain(x: Tensor, *, db: Tensor) -> Tensor:
    """Scale every example by `db` decibels."""
    return x * _column(10 ** (db / 20), x)


def shift(x: Tensor, *, samples: Tensor) -> Tensor:
    """Roll every example by `samples` (int64; positive is later): what leaves at one end enters at the other."""
    return _windows(torch.cat((x, x), dim=1), start=-samples % x.shape[1], length=x.shape[1])


def add_noise(x: Tensor, noise: Tensor, *, snr_db: Tensor) -> Tensor:
    """Add `noise` (same shape), scaled to lie `snr_db` decibels below each example's power. Silence stays silent."""
    ratio = torch.linalg.vector_norm(x, dim=1) / torch.linalg.vector_norm(noise, dim=1).clamp_min(1e-20)
    return torch.addcmul(x, noise, ratio[:, None] * _column(10 ** (-snr_db / 20), x))


def polarity(x: Tensor, *, flip: Tensor) -> Tensor:
    """Turn the sign of every example where `flip` (bool) is true."""
    return x * _column(1 - 2 * flip.float(), x)


def echo(x: Tensor, *, delay: Tensor, decay: Tensor, num_repeats: int = 1) -> Tensor:
    """Add copies `delay`, 2 `delay`, ... samples later (int64), at `decay`, `decay` ** 2, ... of the amplitude."""
    time = x.shape[1]
    padded = pad(x, (time, 0))
    for repeat in range(1, num_repeats + 1):
        later = _windows(padded, start=(time - repeat * delay).clamp_min(0), length=time)
        x = torch.addcmul(x, later, _column(decay**repeat, x))
    return x


def speed(x: Tensor, *, rate: Tensor, start: Tensor | None = None, num_samples: int | None = None) -> Tensor:
    """Play every example `rate` times as fast, pitch included, as a tape does: `[batch, num_samples]`.

    Sample t is `x`, with zeros around it, at `start + rate * t` (samples) by cubic Hermite interpolation (Catmull-Rom).
    Without `start` it is 0, without `num_samples` the length stays. No low-pass: rate 1.25 folds the top fifth back.
    """
    time = x.shape[1]
    step = _column(_fixed_point(rate), x)
    first = _column(_fixed_point(torch.zeros_like(rate) if start is None else start), x)
    padded = pad(x, (4, 4))
    out = x.new_empty(len(x), time if num_samples is None else num_samples)
    for part in out.split(CHUNK, dim=1):
        position = step * torch.arange(part.shape[1], device=x.device) + first
        index = (position >> FRACTION_BITS).clamp_(-3, time + 1).add_(3)
        fraction = (position & (2**FRACTION_BITS - 1)).float().mul_(2.0**-FRACTION_BITS)
        a, b, c, d = (padded[:, k : k + time + 5].gather(1, index) for k in range(4))
        linear = (c - a).mul_(0.5)
        cubic = (b - c).mul_(1.5).add_(d - a, alpha=0.5)
        square = (c - b).sub_(linear).sub_(cubic)
        part.copy_(cubic.mul_(fraction).add_(square).mul_(fraction).add_(linear).mul_(fraction).add_(b))
        first = first + CHUNK * step
    return out


def pitch_shift(x: Tensor, *, semitones: Tensor, n_fft: int) -> Tensor:
    """Raise the pitch of every example by `semitones`, its events stay where they were.

    Played at the wanted pitch (`speed`), frames of `n_fft` samples are taken at the pace of the original and joined by
    a phase vocoder: each is turned, bin by bin, to continue what was written last, as the spectrum one hop before the
    frame says (Puckette 1995). Neighbouring bins turn together; at an onset nothing turns, which keeps attacks sharp.
    """
    moved = semitones.cpu().nonzero().squeeze(1)
    if len(moved) < len(x) or len(moved) == 0:
        return _with_rows(x, moved, lambda rows: pitch_shift(rows, semitones=semitones.cpu()[moved], n_fft=n_fft))
    time, hop = x.shape[1], n_fft // 4
    rate = 2.0 ** (semitones.cpu().double() / 12)
    slowest = rate.min().item()
    margin = n_fft + math.ceil(2 * hop / slowest)
    tape = pad(speed(x, rate=rate, num_samples=math.ceil((time + 1) / slowest)), (margin, margin))
    # Frame centres run from one hop before the clip to two behind it, so that four windows cover every sample.
    centres = torch.arange(-1, time // hop + 3) * hop
    now = (centres / rate[:, None]).round().long() + margin - n_fft // 2
    starts = torch.stack((now - hop, now)).to(x.device)
    window = torch.hann_window(n_fft, device=x.device)
    out = x.new_zeros(len(x), n_fft + hop * (len(centres) - 1))
    written = x.new_zeros(())
    for j in range(len(centres)):
        pair = _windows(tape, start=starts[:, :, j], length=n_fft) * window
        energy_before, energy = pair.square().sum(dim=2)
        before, spectrum = torch.fft.rfft(pair)
        turn = written * before.conj()
        turn = torch.sgn(turn + pad(turn[:, :-1], (1, 0)) + pad(turn[:, 1:], (0, 1)))
        onset = (energy > RISE * energy_before)[:, None]
        written = spectrum * turn.masked_fill_(onset | (turn == 0), 1.0)
        out[:, j * hop : j * hop + n_fft] += torch.fft.irfft(written, n_fft) * window
    return out[:, n_fft // 2 + hop :][:, :time] / 1.5  # what four overlapping squared Hann windows add up to


class _PerExample(nn.Module):
    """What the modules share: each example is changed with `probability`."""

    def __init__(self, *, probability: float = 0.5):
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

    def __init__(self, *, min_db: float = -6.0, max_db: float = 6.0, probability: float = 1.0):
        super().__init__(probability=probability)
        _check(self, -math.inf < min_db <= max_db < math.inf, "min_db <= max_db", min_db, max_db)
        self.min_db, self.max_db = min_db, max_db

    def _change(self, x: Tensor, draws: Draws, coins: Tensor) -> Tensor:
        return gain(x, db=draws.uniform(len(x), low=self.min_db, high=self.max_db).where(coins, 0.0))


class Shift(_PerExample):
    """Roll in time, uniformly within `max_fraction` of the length, either way."""

    def __init__(self, *, max_fraction: float = 1.0, probability: float = 1.0):
        super().__init__(probability=probability)
        _check(self, 0 <= max_fraction <= 1, "max_fraction within 0..1", max_fraction)
        self.max_fraction = max_fraction

    def _change(self, x: Tensor, draws: Draws, coins: Tensor) -> Tensor:
        most = int(self.max_fraction * x.shape[1])
        return shift(x, samples=draws.integers(len(x), low=-most, high=most).where(coins, 0))


class Noise(_PerExample):
    """White noise, at a signal-to-noise ratio that is uniform in decibels."""

    def __init__(self, *, min_snr_db: float = 10.0, max_snr_db: float = 40.0, probability: float = 0.5):
        super().__init__(probability=probability)
        _check(self, -math.inf < min_snr_db <= max_snr_db < math.inf, "min_snr_db <= max_snr_db",
               min_snr_db, max_snr_db)
        self.min_snr_db, self.max_snr_db = min_snr_db, max_snr_db

    def _change(self, x: Tensor, draws: Draws, coins: Tensor) -> Tensor:
        chosen = coins.nonzero().squeeze(1)
        snr_db = draws.uniform(len(x), low=self.min_snr_db, high=self.max_snr_db)[chosen]
        noise = draws.normal_like(x[: len(chosen)])
        return _with_rows(x, chosen, lambda rows: add_noise(rows, noise, snr_db=snr_db))


class Polarity(_PerExample):
    """Turn the sign: microphones and cables do, ears do not hear it."""

    def _change(self, x: Tensor, draws: Draws, coins: Tensor) -> Tensor:
        return polarity(x, flip=coins)


class Echo(_PerExample):
    """`num_repeats` copies of the sound, each later by a delay and weaker by a decay, both uniform."""

    def __init__(self, *, sample_rate: int, min_delay_seconds: float = 0.05, max_delay_seconds: float = 0.3,
                 max_decay: float = 0.5, num_repeats: int = 1, probability: float = 0.5):
        super().__init__(probability=probability)
        _check(self, sample_rate > 0, "a sample_rate above 0 Hz", sample_rate)
        _check(self, 0 < min_delay_seconds <= max_delay_seconds < math.inf,
               "0 < min_delay_seconds <= max_delay_seconds", min_delay_seconds, max_delay_seconds)
        _check(self, 0 <= max_decay <= 1 and num_repeats >= 1,
               "max_decay within 0..1 and num_repeats of 1 or more", max_decay, num_repeats)
        self.min_delay, self.max_delay = min_delay_seconds * sample_rate, max_delay_seconds * sample_rate  # samples
        self.max_decay, self.num_repeats = max_decay, num_repeats

    def _change(self, x: Tensor, draws: Draws, coins: Tensor) -> Tensor:
        delay = draws.uniform(len(x), low=self.min_delay, high=self.max_delay).round().long().clamp_min(1)
        decay = draws.uniform(len(x), high=self.max_decay).where(coins, 0.0)
        return echo(x, delay=delay, decay=decay, num_repeats=self.num_repeats)


class Speed(_PerExample):
    """Faster (zeros follow) or slower (cut, from a uniform place on), at a log-uniform rate; pitch goes along."""

    def __init__(self, *, min_rate: float = 0.8, max_rate: float = 1.25, probability: float = 1.0):
        super().__init__(probability=probability)
        _check(self, 0 < min_rate <= max_rate < math.inf, "0 < min_rate <= max_rate", min_rate, max_rate)
        self.min_rate, self.max_rate = min_rate, max_rate

    def _change(self, x: Tensor, draws: Draws, coins: Tensor) -> Tensor:
        rate = draws.uniform(len(x), low=math.log(self.min_rate), high=math.log(self.max_rate)).exp().where(coins, 1.0)
        spare = (1 - rate).clamp_min(0) * x.shape[1]  # samples that a slower clip does not reach
        return speed(x, rate=rate, start=(draws.uniform(len(x)) * spare).floor())


class PitchShift(_PerExample):
    """Higher or lower by a uniform number of semitones, at the same pace; the costliest of the seven."""

    def __init__(self, *, sample_rate: int, max_semitones: float = 2.0, probability: float = 0.5):
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


def _column(parameter: Tensor, x: Tensor) -> Tensor:
    return parameter.to(x.device)[:, None]


def _fixed_point(samples: Tensor) -> Tensor:
    return (samples.cpu().double() * 2**FRACTION_BITS).round().long()


def _windows(x: Tensor, *, start: Tensor, length: int) -> Tensor:
    """`x[i, start[i] : start[i] + length]` of every row i: whole runs are copied, no index a sample."""
    return x.unfold(1, length, 1)[torch.arange(len(x), device=x.device), start.to(x.device)]


def _with_rows(x: Tensor, rows: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """A copy of `x` with `change` done to some rows, which costs nothing for the others."""
    return x.index_copy(0, rows.to(x.device), change(x[rows.to(x.device)])) if len(rows) else x.clone()
