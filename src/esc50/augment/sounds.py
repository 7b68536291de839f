"""Pure functions of waveforms `[batch, time]`: gain, shift, noise, polarity, echo, speed and pitch.

Each is given one parameter an example (`[batch]`, best left on the CPU, moved as needed), and leaves an example with the
neutral parameter (0 dB, rate 1, ...) exactly as it is. Nothing is limited to full scale.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

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
        return with_rows(x, moved, lambda rows: pitch_shift(rows, semitones=semitones.cpu()[moved], n_fft=n_fft))
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


def _column(parameter: Tensor, x: Tensor) -> Tensor:
    return parameter.to(x.device)[:, None]


def _fixed_point(samples: Tensor) -> Tensor:
    return (samples.cpu().double() * 2**FRACTION_BITS).round().long()


def _windows(x: Tensor, *, start: Tensor, length: int) -> Tensor:
    """`x[i, start[i] : start[i] + length]` of every row i: whole runs are copied, no index a sample."""
    return x.unfold(1, length, 1)[torch.arange(len(x), device=x.device), start.to(x.device)]


def with_rows(x: Tensor, rows: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """A copy of `x` with `change` done to some rows, which costs nothing for the others."""
    return x.index_copy(0, rows.to(x.device), change(x[rows.to(x.device)])) if len(rows) else x.clone()
