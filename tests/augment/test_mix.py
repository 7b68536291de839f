"""Mixup: inputs and labels are mixed alike, by shares that Beta draws, and never in evaluation."""

import pytest
import torch
import torch.nn.functional as F

from esc50.augment.draws import Draws
from esc50.augment.mix import Mixup, mix
from esc50.errors import ConfigError

SHAPES = {"waveforms": (6, 100), "images": (6, 1, 8, 12)}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
TARGET = torch.tensor([0, 3, 1, 2, 1, 4])


def draws(**options) -> Draws:
    return Draws(**({"seed": 3, "epoch": 2, "batch": 1} | options))


def examples(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


def of_example(numbers: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return numbers.reshape(-1, *(1,) * (x.dim() - 1))


def test_a_mixture_computed_by_hand():
    x = torch.tensor([[0.0, 8.0], [4.0, 0.0], [1.0, 1.0]])
    labels = torch.eye(3)
    mixed, probs = mix(x, labels, partner=torch.tensor([1, 2, 2]), share=torch.tensor([0.25, 0.5, 0.1]))
    assert torch.allclose(mixed, torch.tensor([[3.0, 2.0], [2.5, 0.5], [1.0, 1.0]]))
    assert torch.allclose(probs, torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]))


@every_shape
def test_shares_of_1_and_0_are_the_example_and_its_partner_exactly(shape):
    x, labels, partner = examples(shape), F.one_hot(TARGET, 5).float(), torch.tensor([5, 4, 3, 2, 1, 0])
    mixed, probs = mix(x, labels, partner=partner, share=torch.ones(6))
    assert torch.equal(mixed, x) and torch.equal(probs, labels)
    mixed, probs = mix(x, labels, partner=partner, share=torch.zeros(6))
    assert torch.equal(mixed, x.flip(0)) and torch.equal(probs, labels.flip(0))


@every_shape
def test_mixup_is_the_mixture_of_its_draws(shape):
    x, whole = examples(shape), draws()
    partner, share = whole.permutation(6), whole.beta(0.4, 6)
    mixed, probs = Mixup(alpha=0.4)(x, TARGET, draws(), num_classes=5)
    for example in range(6):
        other, part = int(partner[example]), share[example].item()
        assert torch.allclose(mixed[example], part * x[example] + (1 - part) * x[other], atol=1e-6)
        expected = torch.zeros(5)
        expected[TARGET[example]] += part
        expected[TARGET[other]] += 1 - part
        assert torch.allclose(probs[example], expected, atol=1e-6)
    assert not torch.equal(mixed, x)


@every_shape
@pytest.mark.parametrize("alpha", [1e-3, 0.2, 1.0, 50.0])
def test_shares_sum_to_1_and_mixtures_stay_between_their_parts(shape, alpha):
    x = examples(shape)
    mixed, probs = Mixup(alpha=alpha)(x, TARGET, draws(), num_classes=5)
    assert torch.allclose(probs.sum(dim=1), torch.ones(6))
    assert (probs >= 0).all()
    assert x.min() <= mixed.min() and mixed.max() <= x.max()


@every_shape
@pytest.mark.parametrize("how", ["evaluation", "alpha 0", "a batch of one"])
def test_nothing_is_mixed_where_nothing_should_be(shape, how):
    module = Mixup(alpha=0.0 if how == "alpha 0" else 0.4)
    if how == "evaluation":
        module.eval()
    x = examples(shape)[: 1 if how == "a batch of one" else 6]
    target = TARGET[: len(x)]
    mixed, probs = module(x, target, draws(), num_classes=7)
    assert mixed is x
    assert probs.shape == (len(x), 7)
    assert probs.dtype == torch.float32
    assert torch.equal(probs, F.one_hot(target, 7).float())


@every_shape
def test_inputs_and_targets_are_not_written_into(shape):
    x, target = examples(shape), TARGET.clone()
    Mixup(alpha=1.0)(x, target, draws(), num_classes=5)
    assert torch.equal(x, examples(shape))
    assert torch.equal(target, TARGET)


def test_draws_decide_alone():
    x, module = examples((6, 100)), Mixup(alpha=1.0)
    first = module(x, TARGET, draws(), num_classes=5)
    torch.manual_seed(1)
    for one, two in zip(first, module(x, TARGET, draws(), num_classes=5), strict=True):
        assert torch.equal(one, two)
    for other in ({"seed": 4}, {"epoch": 3}, {"batch": 2}):
        assert not torch.equal(module(x, TARGET, draws(**other), num_classes=5)[0], first[0]), other


def test_alpha_1_draws_shares_evenly_and_a_small_alpha_mostly_0_or_1():
    x, target = torch.eye(5000), torch.arange(5000)
    shares = {alpha: Mixup(alpha=alpha)(x, target, draws(), num_classes=5000)[1].diagonal() for alpha in (1.0, 0.1)}
    assert shares[1.0].mean() == pytest.approx(0.5, abs=0.02)
    assert shares[1.0].histc(4, 0, 1).tolist() == pytest.approx([1250] * 4, abs=150)
    assert ((shares[0.1] < 0.05) | (shares[0.1] > 0.95)).float().mean() > 0.7


def test_every_example_of_the_batch_is_a_partner_once():
    x, target = torch.eye(64), torch.arange(64)
    mixed, probs = Mixup(alpha=1.0)(x, target, draws(), num_classes=64)
    assert torch.allclose(mixed, probs, atol=1e-6)  # inputs that are labels are mixed as labels are
    assert (probs > 0).sum(dim=0).max() <= 2
    assert (probs > 0).sum() > 110


def test_an_alpha_below_0_is_refused_in_one_line():
    with pytest.raises(ConfigError, match=r"alpha is -0\.1; wanted 0") as caught:
        Mixup(alpha=-0.1)
    assert "\n" not in str(caught.value)
