"""Learning-rate range test: no trace on the model, groups keep their ratios, bad losses end it, the fall is found."""

import copy
import math
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from esc50.training.lr_finder import find_lr
from esc50.training.optimizers import parameter_groups

RATIOS = {"head": 1.0, "late": 1e-2, "early": 1e-6}


class Net(nn.Module):
    """With everything that a forward pass may move: statistics, dropout's random state."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 8))
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


@pytest.fixture
def net() -> Net:
    torch.manual_seed(0)
    return Net()


def grouped(lr: float = 0.123):
    """Makes an optimiser with three groups; `made` keeps those it made."""
    made: list[Optimizer] = []

    def optimizer(model: nn.Module) -> Optimizer:
        made.append(AdamW(parameter_groups(model, lr=lr, lr_ratio=RATIOS), weight_decay=0.1))
        return made[-1]

    return optimizer, made


def batches(num: int = 3, size: int = 8) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(size, 4, generator=generator), torch.arange(size) % 3) for _ in range(num)]


def cross_entropy(model: nn.Module, batch: tuple[Tensor, Tensor], step: int) -> Tensor:
    return F.cross_entropy(model.train()(batch[0]), batch[1])


def of_losses(losses):
    """A loss that is a function of the step alone; the model takes part with nothing."""
    return lambda model, batch, step: losses(step) + 0.0 * model.head.bias.sum()


def test_it_leaves_no_trace_on_model_and_random_state(net):
    net.eval()
    before, random_state = copy.deepcopy(net), torch.get_rng_state()
    loader = torch.utils.data.DataLoader(
        list(zip(*(torch.cat(part) for part in zip(*batches(), strict=True)), strict=True)), batch_size=6, shuffle=True
    )
    find_lr(net, loader, loss_of=cross_entropy, optimizer=grouped()[0], num_steps=20, high=10.0)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(torch.equal(value, before.state_dict()[name]) for name, value in net.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in net.parameters())
    assert not any(module.training for module in net.modules())


def test_a_failure_leaves_no_trace_either(net):
    random_state = torch.get_rng_state()

    def fails(model, batch, step):
        torch.rand(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        find_lr(net, batches(), loss_of=fails, optimizer=grouped()[0])
    assert torch.equal(torch.get_rng_state(), random_state)


def test_the_rate_runs_from_low_to_high_and_groups_keep_their_ratios(net):
    optimizer, made = grouped()
    rates = []

    def loss_of(model, batch, step):
        rates.append({group["name"]: group["lr"] for group in made[0].param_groups})
        return of_losses(lambda step: 1.0)(model, batch, step)

    curve = find_lr(net, batches(), loss_of=loss_of, optimizer=optimizer, low=1e-5, high=10.0, num_steps=25)
    heads = [rate["head"] for rate in rates]
    assert curve.lrs == tuple(heads)
    assert (heads[0], heads[-1]) == pytest.approx((1e-5, 10.0))
    assert [after / before for before, after in pairwise(heads)] == pytest.approx([10 ** (6 / 24)] * 24)
    for rate in rates:
        assert {name: lr / rate["head"] for name, lr in rate.items()} == pytest.approx(RATIOS, rel=1e-9)


def test_the_copy_really_learns(net):
    """At a fair rate the loss of the copy falls, so the curve is of training, not of evaluation."""
    curve = find_lr(
        net,
        batches(1),
        loss_of=lambda model, batch, step: cross_entropy(model.eval(), batch, step),
        optimizer=lambda model: SGD(model.parameters(), lr=1.0),
        low=0.1,
        high=0.5,
        num_steps=60,
    )
    assert curve.losses[-1] < 0.7 * curve.losses[0]


def test_batches_are_gone_through_as_often_as_needed(net):
    seen = []

    def loss_of(model, batch, step):
        seen.append(batch)
        return of_losses(lambda step: 1.0)(model, batch, step)

    find_lr(net, ["a", "b", "c"], loss_of=loss_of, optimizer=grouped()[0], num_steps=7)
    assert seen == list("abcabca")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_ends_it(net, bad):
    calls = []

    def losses(step):
        calls.append(step)
        return bad if step == 12 else 1.0 - step / 100

    curve = find_lr(net, batches(), loss_of=of_losses(losses), optimizer=grouped()[0], num_steps=50)
    assert calls == list(range(13))
    assert len(curve.lrs) == len(curve.losses) == 12
    assert all(math.isfinite(loss) for loss in curve.losses)
    assert curve.suggestion in curve.lrs


@pytest.mark.parametrize("optimizer", [lambda model: SGD(model.parameters(), lr=1.0), grouped()[0]])
def test_divergence_ends_it_without_a_nan_in_the_curve(net, optimizer):
    curve = find_lr(net, batches(), loss_of=cross_entropy, optimizer=optimizer, high=1e4, num_steps=60)
    assert 10 < len(curve.lrs) < 60
    assert all(math.isfinite(loss) for loss in curve.losses)
    assert max(curve.losses) <= 4.0 * min(curve.losses)
    # Nothing behind the minimum is a suggestion: there the loss swings.
    assert curve.suggestion is None or curve.suggestion < curve.lrs[curve.losses.index(min(curve.losses))]


def test_a_smoothed_loss_of_several_times_the_best_ends_it(net):
    curve = find_lr(
        net,
        batches(),
        loss_of=of_losses(lambda step: 1.0 if step < 20 else 100.0),
        optimizer=grouped()[0],
        num_steps=50,
        diverged=4.0,
    )
    assert len(curve.losses) == 20


@pytest.mark.parametrize("centre", [1e-5, 1e-3, 3e-2])
def test_the_suggestion_lies_where_the_loss_falls_fastest(net, centre):
    low, high, num_steps = 1e-7, 1.0, 700  # a hundred steps a decade: the average lags by a tenth of one

    def losses(step):
        decades = math.log10(low * (high / low) ** (step / (num_steps - 1)) / centre)
        return 1.0 + 1.0 / (1.0 + math.exp(6.0 * decades))

    curve = find_lr(net, batches(), loss_of=of_losses(losses), optimizer=grouped()[0], low=low, high=high, num_steps=num_steps)
    assert centre < curve.suggestion < 1.6 * centre


@pytest.mark.parametrize("losses", [lambda step: 1.0, lambda step: 0.7, lambda step: 1.0 + step / 100])
def test_a_loss_that_never_falls_suggests_nothing(net, losses):
    curve = find_lr(net, batches(), loss_of=of_losses(losses), optimizer=grouped()[0], num_steps=80)
    assert len(curve.lrs) == 80
    assert curve.suggestion is None


@pytest.mark.parametrize("num_steps", [1, 2])
def test_too_few_steps_suggest_nothing(net, num_steps):
    curve = find_lr(net, batches(), loss_of=cross_entropy, optimizer=grouped()[0], num_steps=num_steps)
    assert len(curve.lrs) == num_steps
    assert curve.suggestion is None


def test_a_loss_that_is_bad_from_the_start_gives_an_empty_curve(net):
    curve = find_lr(net, batches(), loss_of=of_losses(lambda step: math.nan), optimizer=grouped()[0])
    assert (curve.lrs, curve.losses, curve.suggestion) == ((), (), None)


def test_a_fall_behind_the_minimum_is_no_suggestion(net):
    """A loss that falls gently, then climbs in leaps: the leaps down are steeper than the fall ever was."""

    def losses(step):
        return 2.0 - step / 100 if step < 60 else 2.0 + 3.0 * (step // 10 % 2)

    curve = find_lr(net, batches(), loss_of=of_losses(losses), optimizer=grouped()[0], num_steps=100)
    assert len(curve.lrs) == 100
    assert curve.suggestion < curve.lrs[60]
