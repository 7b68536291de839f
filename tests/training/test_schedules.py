"""Schedules: factors of the learning rate by progress."""

import math
from itertools import pairwise

import pytest
import torch
from torch.optim.lr_scheduler import OneCycleLR

from esc50.training.schedules import constant, cosine, one_cycle


@pytest.mark.parametrize("progress", [0.0, 0.3, 1.0, 1.7])
def test_constant_is_always_the_full_rate(progress):
    assert constant(progress) == 1.0


@pytest.mark.parametrize(
    ("progress", "factor"), [(0.0, 0.04), (0.15, 0.52), (0.3, 1.0), (0.65, 0.500002), (1.0, 4e-6), (1.5, 4e-6)]
)
def test_one_cycle_at_its_landmarks(progress, factor):
    assert one_cycle(progress) == pytest.approx(factor, rel=1e-6)


@pytest.mark.parametrize(("progress", "factor"), [(0.0, 0.0), (0.1, 0.5), (0.2, 1.0), (0.6, 0.55), (1.0, 0.1), (2.0, 0.1)])
def test_cosine_rises_straight_and_falls_as_half_a_wave(progress, factor):
    assert cosine(progress, warmup=0.2, final=0.1) == pytest.approx(factor, abs=1e-12)


def test_without_warm_up_both_start_at_the_full_rate():
    assert cosine(0.0) == one_cycle(0.0, warmup=0.0) == 1.0


@pytest.mark.parametrize(
    "schedule", [lambda progress: one_cycle(progress, warmup=0.25), lambda progress: cosine(progress, warmup=0.25)]
)
def test_the_rate_rises_through_the_warm_up_then_falls(schedule):
    factors = [schedule(step / 200) for step in range(201)]
    assert all(before < after for before, after in pairwise(factors[:51]))
    assert all(before > after for before, after in pairwise(factors[50:]))
    assert max(factors) == factors[50] == 1.0
    assert min(factors) >= 0.0


@pytest.mark.parametrize("warmup", [0.1, 0.3, 0.5])
def test_one_cycle_agrees_with_torch(warmup):
    """torch's runs from its first to its last step, this one from the first to the end of the last: a step apart at most."""
    num_steps = 2000
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    scheduler = OneCycleLR(
        optimizer, max_lr=1.0, total_steps=num_steps, pct_start=warmup, anneal_strategy="cos", cycle_momentum=False
    )
    steepest = math.pi / 2 / min(warmup, 1 - warmup) / num_steps
    for step in range(num_steps):
        assert one_cycle(step / num_steps, warmup=warmup) == pytest.approx(optimizer.param_groups[0]["lr"], abs=1.1 * steepest)
        optimizer.step()
        if step < num_steps - 1:
            scheduler.step()
    assert one_cycle(1.0, warmup=warmup) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-6)
