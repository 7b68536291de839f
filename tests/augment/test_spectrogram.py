"""Masks, warp and shift of images: on the right axis, of the right size, drawn for each example, never in evaluation."""

from dataclasses import dataclass

import pytest
import torch

from esc50.augment.draws import Draws
from esc50.augment.spectrogram import (
    FREQUENCY,
    TIME,
    FrequencyMask,
    PixelNoise,
    SpecAugment,
    TimeMask,
    TimeShift,
    TimeWarp,
    mask_axis,
    roll_time,
    warp_time,
)
from esc50.errors import ConfigError

KEY = {"seed": 3, "epoch": 2, "batch": 1}
MODULES = {
    "frequency mask": lambda **options: FrequencyMask(**({"max_width": 6, "num_masks": 2} | options)),
    "time mask": lambda **options: TimeMask(**({"max_width": 9, "num_masks": 2} | options)),
    "time warp": lambda **options: TimeWarp(**({"max_shift": 8} | options)),
    "pixel noise": lambda **options: PixelNoise(**({"level": 0.1} | options)),
    "time shift": lambda **options: TimeShift(**options),
    "specaugment": lambda **options: SpecAugment(**({"W": 5, "F": 6, "m_F": 2, "T": 9, "m_T": 2} | options)),
}
every_module = pytest.mark.parametrize("name", MODULES)
both_masks = pytest.mark.parametrize("mask, axis", [(FrequencyMask, FREQUENCY), (TimeMask, TIME)], ids=["frequency", "time"])


def images(*, batch: int = 4, mel: int = 20, frames: int = 30, channels: int = 1, seed: int = 0) -> torch.Tensor:
    """Images without a zero and without two equal points in a row or column."""
    return 0.1 + 0.9 * torch.rand(batch, channels, mel, frames, generator=torch.Generator().manual_seed(seed))


def draws(batch: int = 1, **options) -> Draws:
    return Draws(**(KEY | {"batch": batch} | options))


@dataclass
class Given:
    """Draws whose uniform numbers are all the same."""

    number: float

    def uniform(self, *shape, low=0.0, high=1.0):
        return torch.full(shape, low + (high - low) * self.number)

    def integers(self, *shape, low=0, high):
        return torch.full(shape, low + int(self.number * (high - low + 1)))


def covered(x: torch.Tensor, masked: torch.Tensor, axis: int) -> torch.Tensor:
    """Which positions along `axis` are covered, `[batch, positions]`; asserts that they are covered from end to end."""
    changed = (x != masked)[:, 0]
    other = 1 if axis == TIME else 2
    assert torch.equal(changed.any(dim=other), changed.all(dim=other))
    return changed.any(dim=other)


def runs(positions: torch.Tensor) -> list[tuple[int, int]]:
    """Start and length of each stretch of true values."""
    edges = torch.diff(positions.int(), prepend=torch.zeros(1), append=torch.zeros(1))
    starts, ends = (edges == 1).nonzero().flatten().tolist(), (edges == -1).nonzero().flatten().tolist()
    return [(start, end - start) for start, end in zip(starts, ends, strict=True)]


# What holds for all


@every_module
def test_evaluation_returns_the_image_itself(name):
    x = images()
    assert MODULES[name]().eval()(x, draws()) is x


@every_module
def test_training_changes_the_image_but_not_the_input(name):
    x = images(batch=8)
    before = x.clone()
    out = MODULES[name]()(x, draws())
    assert not torch.equal(out, x)
    assert torch.equal(x, before)
    assert out.shape == x.shape and out.dtype == x.dtype and out.isfinite().all()


@pytest.mark.parametrize("name", ["frequency mask", "time mask", "time warp", "time shift"])
def test_probability_0_leaves_the_image(name):
    x = images()
    assert torch.equal(MODULES[name](probability=0.0)(x, draws()), x)


@pytest.mark.parametrize("name", ["frequency mask", "time mask", "time warp", "time shift"])
def test_probability_is_the_share_of_examples_that_are_changed(name):
    x = images(batch=1, frames=60).expand(4000, -1, -1, -1)
    always, sometimes = (MODULES[name](probability=probability)(x, draws()) for probability in (1.0, 0.3))
    changed = [(out != x).flatten(1).any(dim=1).float().mean().item() for out in (always, sometimes)]
    assert changed[0] > 0.85  # a width or shift of 0 is a draw like others
    assert changed[1] / changed[0] == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize(
    "neutral",
    [
        FrequencyMask(max_width=0),
        TimeMask(max_width=0),
        FrequencyMask(max_width=5, num_masks=0),
        TimeMask(max_width=5, num_masks=0),
        TimeWarp(max_shift=0),
        TimeShift(max_fraction=0.0),
        SpecAugment(F=0, T=0),
        SpecAugment(F=5, m_F=0, T=5, m_T=0),
    ],
)
def test_nothing_to_do_leaves_the_image(neutral):
    x = images()
    assert torch.equal(neutral(x, draws()), x)


@every_module
def test_the_same_draws_give_the_same_image_and_others_another(name):
    x, module = images(batch=8), MODULES[name]()
    out = module(x, draws())
    assert torch.equal(module(x, draws()), out)
    for other in ({"seed": 4}, {"epoch": 3}, {"batch": 2}):
        assert not torch.equal(module(x, Draws(**(KEY | other))), out), other


@every_module
def test_the_global_generator_is_neither_read_nor_moved(name):
    x, module = images(), MODULES[name]()
    torch.manual_seed(0)
    before, first = torch.get_rng_state(), module(x, draws())
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    assert torch.equal(module(x, draws()), first)


@every_module
def test_examples_of_a_batch_get_draws_of_their_own(name):
    x = images(batch=1).expand(6, -1, -1, -1)
    out = MODULES[name]()(x, draws())
    assert len({tuple(image.flatten().tolist()) for image in out}) > 4


@every_module
def test_an_example_does_not_depend_on_its_neighbours(name):
    x, other = images(batch=6), images(batch=6, seed=1)
    other[2] = x[2]
    assert torch.equal(MODULES[name]()(x, draws())[2], MODULES[name]()(other, draws())[2])


@every_module
@pytest.mark.parametrize("world", [2, 3])
def test_processes_do_together_what_one_does(name, world):
    x, module = images(batch=6), MODULES[name]()
    whole = module(x, draws())
    for rank in range(world):
        assert torch.equal(module(x[rank::world], draws(rank=rank, world=world)), whole[rank::world])


@pytest.mark.parametrize("name", [name for name in MODULES if name != "pixel noise"])
def test_the_channels_of_an_image_move_together(name):
    grey = images()
    out = MODULES[name]()(grey.expand(-1, 3, -1, -1), draws())
    for channel in range(3):
        assert torch.allclose(out[:, channel : channel + 1], MODULES[name]()(grey, draws()), atol=1e-6)


@every_module
@pytest.mark.parametrize("mel, frames", [(1, 1), (1, 2), (2, 1), (3, 3)])
def test_tiny_images_pass(name, mel, frames):
    x = images(mel=mel, frames=frames)
    out = MODULES[name]()(x, draws())
    assert out.shape == x.shape
    assert out.isfinite().all()


# Masks


def test_a_mask_covers_exactly_what_it_says_on_its_axis():
    x = images(batch=2)
    start, width = torch.tensor([[3], [0]]), torch.tensor([[4], [1]])
    by_frequency = mask_axis(x, start=start, width=width, axis=FREQUENCY, fill=0.0)
    assert covered(x, by_frequency, FREQUENCY).nonzero().tolist() == [[0, 3], [0, 4], [0, 5], [0, 6], [1, 0]]
    assert (by_frequency[0, :, 3:7, :] == 0).all()
    by_time = mask_axis(x, start=start, width=width, axis=TIME, fill=0.0)
    assert covered(x, by_time, TIME).nonzero().tolist() == [[0, 3], [0, 4], [0, 5], [0, 6], [1, 0]]
    assert (by_time[0, :, :, 3:7] == 0).all()


def test_masks_of_width_0_cover_nothing():
    x = images()
    masked = mask_axis(x, start=torch.full((4, 3), 5), width=torch.zeros(4, 3, dtype=torch.int64), axis=TIME, fill=0.0)
    assert torch.equal(masked, x)
    assert masked is not x


@both_masks
@pytest.mark.parametrize("fill", ["mean", "floor"])
def test_a_batch_is_masked_as_its_examples_one_by_one(mask, axis, fill):
    x, module = images(batch=5), mask(max_width=7, num_masks=3, fill=fill)
    whole = draws()
    width = whole.integers(5, 3, high=min(7, (x.shape[axis] - 1) // 3))
    start = (whole.uniform(5, 3) * (x.shape[axis] - width + 1)).long()
    expected = x.clone()
    for example in range(5):
        value = x[example].mean() if fill == "mean" else 0.0
        for first, wide in zip(start[example].tolist(), width[example].tolist(), strict=True):
            expected[example].narrow(axis, first, wide).fill_(value)
    assert torch.allclose(module(x, draws()), expected, atol=1e-6)
    assert width.sum() > 0


@both_masks
def test_widths_from_0_to_the_maximum_are_drawn_equally_often_and_every_place_is_reached(mask, axis):
    x = torch.ones(6000, 1, 12, 12)
    masks = covered(x, mask(max_width=4, fill="floor")(x, draws()), axis)
    widths = masks.sum(dim=1)
    assert widths.bincount().tolist() == pytest.approx([1200] * 5, abs=150)
    for width in range(1, 5):
        starts = masks[widths == width].int().argmax(dim=1)
        assert set(starts.tolist()) == set(range(12 - width + 1))  # inside, up to both edges
        assert starts.bincount().float().std() < 0.4 * starts.bincount().float().mean()


@both_masks
@pytest.mark.parametrize("number", [0.0, 0.5, 1 - 2**-24])
def test_a_mask_is_one_stretch_that_lies_inside(mask, axis, number):
    """Also for the largest number below 1 that a generator gives."""
    x = images(batch=1)
    size = x.shape[axis]
    stretches = runs(covered(x, mask(max_width=7, fill="floor")(x, Given(number)), axis)[0])
    assert stretches == {0.0: [], 0.5: [(int(0.5 * (size - 3)), 4)], 1 - 2**-24: [(size - 7, 7)]}[number]


@both_masks
def test_a_width_of_1_works(mask, axis):
    x = images(batch=200)
    widths = covered(x, mask(max_width=1, fill="floor")(x, draws()), axis).sum(dim=1)
    assert set(widths.tolist()) == {0, 1}


@both_masks
@pytest.mark.parametrize("num_masks", [1, 2, 5, 40])
def test_masks_wider_than_the_image_never_cover_it_whole(mask, axis, num_masks):
    x = images(batch=500, mel=16, frames=31)
    masks = covered(x, mask(max_width=200, num_masks=num_masks, fill="floor")(x, draws()), axis)
    assert not masks.all(dim=1).any()
    if num_masks < x.shape[axis]:
        widest = (x.shape[axis] - 1) // num_masks
        assert masks.sum(dim=1).max() > widest // 2  # narrowed, not given up
    assert x.shape[axis] - 1 in masks.sum(dim=1) or num_masks > 1


def test_a_clip_of_a_third_of_a_second_survives_masks_of_96_frames_and_200_bands():
    x = images(batch=300, mel=128, frames=31)
    both = SpecAugment(F=200, m_F=2, T=96, m_T=2, fill="floor")(x, draws())
    for out in (TimeMask(max_width=96)(x, draws()), FrequencyMask(max_width=200)(x, draws()), both):
        assert (out == x).flatten(1).any(dim=1).all()
        assert not torch.equal(out, x)


@both_masks
def test_the_mean_is_that_of_the_example_before_masking_and_the_floor_is_silence(mask, axis):
    x = images(batch=3) * torch.tensor([0.2, 0.5, 1.0])[:, None, None, None]
    for fill, values in (("mean", x.mean(dim=(1, 2, 3))), ("floor", torch.zeros(3))):
        out = mask(max_width=9, num_masks=2, fill=fill)(x, Given(0.7))
        for example in range(3):
            hidden = out[example][out[example] != x[example]]
            assert len(hidden) > 0
            assert torch.allclose(hidden, values[example].expand_as(hidden), atol=1e-6)


@both_masks
def test_masks_are_numbered(mask, axis):
    x = images(batch=400, mel=60, frames=60)
    counts = {len(runs(row)) for row in covered(x, mask(max_width=3, num_masks=3, fill="floor")(x, draws()), axis)}
    assert counts == {0, 1, 2, 3}


# Time warp


def ramp(*, batch: int = 1, frames: int = 41) -> torch.Tensor:
    """Every frame holds its own number."""
    return torch.arange(frames, dtype=torch.float32).expand(batch, 1, 3, frames)


def test_warping_moves_the_anchor_and_keeps_both_ends():
    x = ramp(batch=3)
    anchor, shift = torch.tensor([10.0, 20.0, 30.0]), torch.tensor([7.0, -7.0, 4.0])
    out = warp_time(x, anchor=anchor, shift=shift)
    for example in range(3):
        where = int(anchor[example] + shift[example])
        assert out[example, 0, :, where].tolist() == pytest.approx([anchor[example].item()] * 3, abs=1e-4)
    assert (out[..., 0] == 0).all()
    assert (out[..., -1] == 40).all()


def test_warping_stretches_one_part_and_squeezes_the_other_evenly():
    steps = warp_time(ramp(), anchor=torch.tensor([10.0]), shift=torch.tensor([10.0]))[0, 0, 0].diff()
    assert torch.allclose(steps[:20], torch.tensor(0.5), atol=1e-4)
    assert torch.allclose(steps[20:], torch.tensor(1.5), atol=1e-4)


def test_warping_by_0_is_identity_for_that_example():
    x = images()
    out = warp_time(x, anchor=torch.tensor([3.3, 10.0, 15.5, 28.0]), shift=torch.tensor([0.0, 3.0, 0.0, 0.0]))
    assert [torch.equal(warped, image) for warped, image in zip(out, x, strict=True)] == [True, False, True, True]


def test_time_warp_never_turns_time_back_and_never_leaves_the_clip():
    for frames in (4, 5, 12, 41):
        out = TimeWarp(max_shift=100)(ramp(batch=500, frames=frames), draws())
        assert (out.diff(dim=-1) >= -1e-4).all()
        assert (out[..., 0] == 0).all()
        assert (out[..., -1] == frames - 1).all()


def test_time_warp_moves_frames_by_max_shift_at_most():
    x = ramp(batch=2000, frames=101)
    moved = (TimeWarp(max_shift=6)(x, draws()) - x).abs().amax(dim=(1, 2, 3))
    assert 5.8 < moved.max() < 6.01


# Time shift


def test_roll_equals_torch_roll_one_by_one():
    x, shift = images(batch=6), torch.tensor([0, 1, -1, 29, -45, 30])
    rolled = roll_time(x, shift)
    for example in range(6):
        assert torch.equal(rolled[example], torch.roll(x[example], int(shift[example]), dims=-1))


def test_time_shift_stays_within_its_fraction_of_the_clip():
    x = ramp(batch=2000, frames=100)
    shifts = TimeShift(max_fraction=0.1)(x, draws())[:, 0, 0].argmin(dim=1)  # where frame 0 has gone
    signed = torch.where(shifts > 50, shifts - 100, shifts)
    assert set(signed.tolist()) == set(range(-10, 11))


def test_a_whole_turn_reaches_every_place():
    shifts = TimeShift()(ramp(batch=2000, frames=20), draws())[:, 0, 0].argmin(dim=1)
    assert set(shifts.tolist()) == set(range(20))


# SpecAugment


def test_specaugment_is_warp_then_frequency_masks_then_time_masks():
    x = images()
    together = draws()
    expected = TimeWarp(max_shift=5)(x, together)
    expected = FrequencyMask(max_width=6, num_masks=2, fill="floor")(expected, together)
    expected = TimeMask(max_width=9, num_masks=2, fill="floor")(expected, together)
    assert torch.equal(SpecAugment(W=5, F=6, m_F=2, T=9, m_T=2, fill="floor")(x, draws()), expected)


def test_specaugment_by_default_is_one_mask_of_each_kind_and_no_warp():
    x = images()
    together = draws()
    expected = TimeMask(max_width=9)(FrequencyMask(max_width=6)(x, together), together)
    assert torch.equal(SpecAugment(F=6, T=9)(x, draws()), expected)


def test_no_time_mask_of_specaugment_is_wider_than_p_of_the_frames():
    module = SpecAugment(F=0, T=20, p=0.2, fill="floor")
    for frames, widest in ((50, 10), (200, 20), (30, 6), (50, 10)):  # the longer clip does not spoil the limit
        x = images(batch=400, frames=frames)
        assert covered(x, module(x, draws()), TIME).sum(dim=1).max() == widest


# Impossible values


@pytest.mark.parametrize(
    "make",
    [
        *(
            lambda mask=mask, wrong=wrong: mask(**({"max_width": 3} | wrong))
            for mask in (FrequencyMask, TimeMask)
            for wrong in (
                {"max_width": -1},
                {"num_masks": -1},
                {"probability": 1.1},
                {"probability": -0.1},
                {"probability": float("nan")},
                {"fill": "zero"},
            )
        ),
        lambda: TimeWarp(max_shift=-1),
        lambda: TimeWarp(max_shift=1, probability=2),
        lambda: TimeShift(max_fraction=1.5),
        lambda: TimeShift(max_fraction=-0.1),
        lambda: TimeShift(probability=-1),
        lambda: SpecAugment(F=1, T=1, p=0),
        lambda: SpecAugment(F=1, T=1, p=1.5),
        lambda: SpecAugment(F=-1, T=1),
        lambda: SpecAugment(F=1, T=-1),
        lambda: SpecAugment(F=1, T=1, W=-1),
        lambda: SpecAugment(F=1, T=1, m_F=-1),
        lambda: SpecAugment(F=1, T=1, m_T=-2),
        lambda: SpecAugment(F=1, T=1, fill="black"),
    ],
)
def test_impossible_values_are_refused_in_one_line(make):
    with pytest.raises(ConfigError, match=r"want|within") as caught:
        make()
    assert "\n" not in str(caught.value)


def test_pixel_noise_is_uniform_up_to_its_level():
    x = images(batch=8, mel=64, frames=64)
    noise = PixelNoise(level=0.2).train()(x, draws()) - x
    assert 0 <= noise.min() < 0.001 and 0.199 < noise.max() <= 0.2 + 1e-6
    assert noise.mean().item() == pytest.approx(0.1, abs=0.002)
    counts = torch.histc(noise, 8, 0, 0.2)
    assert counts.min() > 0.9 * counts.mean()


def test_pixel_noise_reaches_only_those_whose_coin_says_so():
    x = images(batch=64, mel=8, frames=8)
    changed = (PixelNoise(level=0.2, probability=0.5).train()(x, draws()) != x).flatten(1).any(dim=1)
    assert 16 < changed.sum() < 48
