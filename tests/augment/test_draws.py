"""Draws: a function of seed, epoch, batch and process alone."""

import pytest
import torch

from esc50.augment.draws import Draws, seed_of

KEY = {"seed": 3, "epoch": 2, "batch": 1}
DRAWS = {
    "uniform": lambda draws, n: draws.uniform(n, low=-1.0, high=2.0),
    "uniform of two axes": lambda draws, n: draws.uniform(n, 5),
    "integers": lambda draws, n: draws.integers(n, low=-1000, high=1000),
    "beta": lambda draws, n: draws.beta(0.4, n),
}


def everything(draws: Draws) -> list[torch.Tensor]:
    """One draw of every kind."""
    small = [draw(draws, 8) for draw in DRAWS.values()]
    return [*small, draws.permutation(50), draws.normal_like(torch.zeros(2, 100))]


def test_same_key_gives_the_same_numbers():
    for first, second in zip(everything(Draws(**KEY)), everything(Draws(**KEY)), strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize("part", ["seed", "epoch", "batch"])
def test_another_seed_epoch_or_batch_gives_other_numbers(part):
    other = Draws(**(KEY | {part: KEY[part] + 1}))
    for first, second in zip(everything(Draws(**KEY)), everything(other), strict=True):
        assert not torch.equal(first, second)


def test_exchanged_parts_give_other_numbers():
    """A sum of the parts would give seed 1, epoch 2 the numbers of seed 2, epoch 1."""
    seeds = {seed_of(a, b, c) for a in range(10) for b in range(10) for c in range(10)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**63 for seed in seeds)
    one, other = Draws(seed=1, epoch=2, batch=3), Draws(seed=2, epoch=1, batch=3)
    assert not torch.equal(one.uniform(5), other.uniform(5))


def test_successive_draws_differ():
    draws = Draws(**KEY)
    assert not torch.equal(draws.uniform(20), draws.uniform(20))
    assert not torch.equal(draws.normal_like(torch.zeros(2, 20)), draws.normal_like(torch.zeros(2, 20)))


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("name", DRAWS)
def test_processes_share_the_numbers_of_one(name, world):
    whole = Draws(**KEY)
    ranks = [Draws(**KEY, rank=rank, world=world) for rank in range(world)]
    for _ in range(3):  # they stay in step
        expected = DRAWS[name](whole, 4 * world)
        for rank, draws in enumerate(ranks):
            assert torch.equal(DRAWS[name](draws, 4), expected[rank::world])


def test_processes_stay_in_step_after_noise_of_different_shapes():
    first, second = (Draws(**KEY, rank=rank, world=2) for rank in range(2))
    noise, other = first.normal_like(torch.zeros(3, 10)), second.normal_like(torch.zeros(0, 10))
    assert noise.shape == (3, 10)
    assert other.shape == (0, 10)
    expected = Draws(**KEY)
    expected.normal_like(torch.zeros(1))
    numbers = expected.uniform(8)
    assert torch.equal(first.uniform(4), numbers[0::2])
    assert torch.equal(second.uniform(4), numbers[1::2])


def test_processes_have_noise_of_their_own():
    x = torch.zeros(2, 100)
    assert not torch.equal(Draws(**KEY, rank=0, world=2).normal_like(x), Draws(**KEY, rank=1, world=2).normal_like(x))


def test_uniform_fills_its_range():
    numbers = Draws(**KEY).uniform(100_000, low=-2.0, high=6.0)
    assert numbers.dtype == torch.float32
    assert -2 <= numbers.min() < -1.99
    assert 5.99 < numbers.max() <= 6
    assert numbers.mean() == pytest.approx(2, abs=0.05)


def test_integers_include_both_ends_equally_often():
    numbers = Draws(**KEY).integers(30_000, low=-1, high=1)
    assert numbers.dtype == torch.int64
    values, counts = numbers.unique(return_counts=True)
    assert values.tolist() == [-1, 0, 1]
    assert counts.min() > 9_600


def test_integers_with_a_bound_for_each_example():
    high = torch.tensor([0, 1, 4])
    numbers = torch.stack([Draws(seed=0, epoch=0, batch=batch).integers(3, low=0, high=high) for batch in range(300)])
    assert (numbers >= 0).all()
    assert numbers.amax(dim=0).tolist() == [0, 1, 4]
    assert set(numbers[:, 2].tolist()) == {0, 1, 2, 3, 4}


def test_integers_with_a_bound_for_each_example_and_two_axes():
    numbers = Draws(**KEY).integers(2, 500, high=torch.tensor([1, 9]))
    assert numbers.shape == (2, 500)
    assert numbers.amax(dim=1).tolist() == [1, 9]


@pytest.mark.parametrize("alpha", [0.2, 1.0, 8.0])
def test_beta_has_the_mean_and_variance_of_the_distribution(alpha):
    numbers = Draws(**KEY).beta(alpha, 50_000)
    assert numbers.dtype == torch.float32
    assert 0 <= numbers.min() <= numbers.max() <= 1
    assert numbers.mean() == pytest.approx(0.5, abs=0.01)
    assert numbers.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.03)


def test_normal_numbers_are_standard():
    numbers = Draws(**KEY).normal_like(torch.zeros(2, 50_000))
    assert numbers.mean() == pytest.approx(0, abs=0.02)
    assert numbers.std() == pytest.approx(1, abs=0.02)
    assert abs(torch.corrcoef(numbers)[0, 1]) < 0.02


def test_permutation_holds_every_example_once():
    order = Draws(**KEY).permutation(50)
    assert order.tolist() != list(range(50))
    assert sorted(order.tolist()) == list(range(50))


def test_the_global_generator_is_neither_read_nor_moved():
    torch.manual_seed(0)
    before, first = torch.get_rng_state(), everything(Draws(**KEY))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    for one, two in zip(first, everything(Draws(**KEY)), strict=True):
        assert torch.equal(one, two)
