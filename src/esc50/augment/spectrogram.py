"""Augmentations of images `[batch, channels, mel, frames]` within 0..1, where 0 is silence."""

import torch
from torch import Tensor, nn

from esc50.augment.draws import Draws
from esc50.config.kinds import Count, Fill, PositiveShare, Probability, Share
from esc50.errors import ConfigError

FREQUENCY, TIME = -2, -1


def mask_axis(x: Tensor, *, start: Tensor, width: Tensor, axis: int, fill: Tensor | float) -> Tensor:
    """Cover `start <= position < start + width` along `axis` (-2 frequency, -1 time) with `fill`.

    `start` and `width` are `[batch, masks]`; `fill` is a number or broadcastable to `x`. Returns a new tensor.
    """
    positions = torch.arange(x.shape[axis], device=x.device)
    start, width = start.to(x.device).unsqueeze(-1), width.to(x.device).unsqueeze(-1)
    covered = ((positions >= start) & (positions < start + width)).any(dim=1)  # [batch, positions]
    shape = [len(x), 1, 1, 1]
    shape[axis] = -1
    covered = covered.reshape(shape).to(x.dtype)
    # Half the time of torch.where, and exact: each point is multiplied by one or by zero.
    return torch.addcmul(covered * fill, x, 1 - covered)


class _Mask(nn.Module):
    """Random bands or stretches, drawn for each example: width uniform in 0..max_width, both inclusive, and the start
    uniform over the places where the mask lies inside (Park et al. 2019, arXiv 1904.08779). Masks that
    together could cover the image are narrowed, each to its share of all rows or columns but one, so that nothing is ever
    masked whole."""

    axis: int

    def __init__(self, *, max_width: Count, num_masks: Count = 1, fill: Fill = "mean", probability: Probability = 1.0):
        super().__init__()
        if max_width < 0 or num_masks < 0 or not 0 <= probability <= 1 or fill not in ("mean", "floor"):
            raise ConfigError(
                f"a mask wants max_width and num_masks of 0 or more, probability within 0..1 and fill mean or"
                f" floor, not {max_width}, {num_masks}, {probability}, {fill}"
            )
        self.max_width, self.num_masks, self.fill, self.probability = max_width, num_masks, fill, probability

    def forward(self, x: Tensor, draws: Draws) -> Tensor:
        if not self.training or self.num_masks == 0:
            return x
        size = x.shape[self.axis]
        widest = min(self.max_width, max(0, (size - 1) // self.num_masks))
        shape = (len(x), self.num_masks)
        width = draws.integers(*shape, high=widest)
        start = torch.minimum((draws.uniform(*shape) * (size - width + 1)).long(), size - width)
        width = width * (draws.uniform(len(x), 1) < self.probability)
        fill = x.mean(dim=(1, 2, 3), keepdim=True) if self.fill == "mean" else 0.0
        return mask_axis(x, start=start, width=width, axis=self.axis, fill=fill)


class FrequencyMask(_Mask):
    """Covers up to `max_width` mel bands, `num_masks` times, with the example's mean or silence (`fill`: mean, floor)."""

    axis = FREQUENCY


class TimeMask(_Mask):
    """Covers up to `max_width` frames, `num_masks` times, with the example's mean or silence (`fill`: mean, floor)."""

    axis = TIME


def warp_time(x: Tensor, *, anchor: Tensor, shift: Tensor) -> Tensor:
    """Move the frame `anchor` of each example to `anchor + shift`, stretching the left part and squeezing the right one
    linearly; the first and last frame stay, and all of them where `shift` is 0. `anchor`, `shift`: `[batch]` in frames;
    |shift| below the distance to both ends."""
    frames = x.shape[TIME]
    last = frames - 1
    target = torch.arange(frames, device=x.device, dtype=torch.float32)
    shift = shift.to(x.device, torch.float32).unsqueeze(1)
    moved = anchor.to(x.device, torch.float32).unsqueeze(1) + shift
    # The shift dies away linearly to both ends.
    share = torch.minimum(target / moved.clamp_min(1e-6), (last - target) / (last - moved).clamp_min(1e-6))
    position = (target - shift * share).clamp(0, last)  # [batch, frames], where each frame comes from
    below = position.floor().long().clamp_max(max(last - 1, 0))
    part = (position - below).to(x.dtype)[:, None, None, :]
    index = below[:, None, None, :].expand_as(x)
    return torch.lerp(x.gather(-1, index), x.gather(-1, (index + 1).clamp_max(last)), part)


class TimeWarp(nn.Module):
    """Time warping by up to `max_shift` frames around a random frame (Park et al. 2019; linear instead of a spline)."""

    def __init__(self, *, max_shift: Count, probability: Probability = 1.0):
        super().__init__()
        if max_shift < 0 or not 0 <= probability <= 1:
            raise ConfigError(
                f"time warp wants max_shift of 0 or more and probability within 0..1, not {max_shift} and {probability}"
            )
        self.max_shift, self.probability = max_shift, probability

    def forward(self, x: Tensor, draws: Draws) -> Tensor:
        most = min(self.max_shift, (x.shape[TIME] - 2) // 2)
        if not self.training or most <= 0:
            return x
        anchor = draws.uniform(len(x), low=most + 0.5, high=x.shape[TIME] - 1.5 - most)
        shift = draws.uniform(len(x), low=-most, high=most) * (draws.uniform(len(x)) < self.probability)
        return warp_time(x, anchor=anchor, shift=shift)


class SpecAugment(nn.Module):
    """SpecAugment (Park et al. 2019, arXiv 1904.08779) with the paper's names: time warp `W`, frequency mask `F` bands
    wide at most and `m_F` of them, time mask `T` frames wide at most and `m_T` of them, no time mask wider than the share
    `p` of the frames. `fill`: mean or floor (silence)."""

    def __init__(
        self, *, W: Count = 0, F: Count, m_F: Count = 1, T: Count, m_T: Count = 1, p: PositiveShare = 1.0, fill: Fill = "mean"
    ):
        super().__init__()
        if not 0 < p <= 1:
            raise ConfigError(f"SpecAugment's p is the widest time mask as a share of the frames, within 0..1, not {p}")
        self.p, self.T = p, T
        self.warp = TimeWarp(max_shift=W)
        self.frequency = FrequencyMask(max_width=F, num_masks=m_F, fill=fill)
        self.time = TimeMask(max_width=T, num_masks=m_T, fill=fill)

    def forward(self, x: Tensor, draws: Draws) -> Tensor:
        self.time.max_width = min(self.T, int(self.p * x.shape[TIME]))
        return self.time(self.frequency(self.warp(x, draws), draws), draws)


class PixelNoise(nn.Module):
    """Adds uniform noise of up to `level` (1 is the whole range of an image) to every pixel, in 256 steps."""

    def __init__(self, *, level: Share, probability: Probability = 1.0):
        super().__init__()
        if not 0 <= level <= 1 or not 0 <= probability <= 1:
            raise ConfigError(f"pixel noise wants level and probability within 0..1, not {level} and {probability}")
        self.level, self.probability = level, probability

    def forward(self, x: Tensor, draws: Draws) -> Tensor:
        if not self.training or self.level == 0 or self.probability == 0:
            return x
        coins = draws.uniform(len(x)) < self.probability
        noise = draws.bytes_like(x)
        if not coins.all():
            noise = noise * coins.to(x.device)[:, None, None, None]
        return torch.add(x, noise, alpha=self.level / 255)


class TimeShift(nn.Module):
    """Rolls each image around in time by up to `max_fraction` of its length, either way."""

    def __init__(self, *, max_fraction: Share = 1.0, probability: Probability = 1.0):
        super().__init__()
        if not 0 <= max_fraction <= 1 or not 0 <= probability <= 1:
            raise ConfigError(f"time shift wants max_fraction and probability within 0..1, not {max_fraction} and {probability}")
        self.max_fraction, self.probability = max_fraction, probability

    def forward(self, x: Tensor, draws: Draws) -> Tensor:
        if not self.training:
            return x
        frames = x.shape[TIME]
        shift = draws.uniform(len(x), low=-self.max_fraction, high=self.max_fraction) * frames
        shift = (shift * (draws.uniform(len(x)) < self.probability)).round().long()
        return roll_time(x, shift)


def roll_time(x: Tensor, shift: Tensor) -> Tensor:
    """Roll example i by `shift[i]` frames, as torch.roll does for one; `shift` is `[batch]` int64."""
    frames = x.shape[TIME]
    index = (torch.arange(frames, device=x.device) - shift.to(x.device).unsqueeze(1)) % frames
    return x.gather(TIME, index[:, None, None, :].expand_as(x))
