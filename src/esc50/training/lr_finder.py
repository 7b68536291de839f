"""Learning-rate range test: raise the rate step by step and see where the loss falls fastest."""

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from tqdm import tqdm

Batch = TypeVar("Batch")

SMOOTHING = 0.9
ROUNDING = 1e-6  # part of the loss; to fall by less is not to fall
SKIPPED = 0.1  # share of the curve at its start that is noise before the average has settled


@dataclass(frozen=True, kw_only=True)
class LrCurve:
    """`lrs` of the head and the smoothed `losses` at them, up to where the loss diverged; `suggestion` is the rate at which
    the loss falls fastest, None where it never falls."""

    lrs: tuple[float, ...]
    losses: tuple[float, ...]
    suggestion: float | None


def find_lr(
    model: nn.Module,
    batches: Iterable[Batch],
    *,
    loss_of: Callable[[nn.Module, Batch, int], Tensor],
    optimizer: Callable[[nn.Module], Optimizer],
    low: float = 1e-7,
    high: float = 1.0,
    num_steps: int = 100,
    diverged: float = 4.0,
) -> LrCurve:
    """Range test (Smith 2017, arXiv 1506.01186) on a copy of `model`, which itself stays untouched, as does torch's random
    state.

    `batches` is gone through as often as needed; `loss_of(model, batch, step)` gives a scalar. `optimizer(model)` makes an
    optimiser whose first group is the head; the rate of that group runs from `low` to `high` on a logarithmic scale and all
    other groups keep their ratio to it. Ends when the smoothed loss exceeds `diverged` times its best, or is not finite.
    """
    trial = copy.deepcopy(model)
    lrs: list[float] = []
    losses: list[float] = []
    with torch.random.fork_rng():
        trained = optimizer(trial)
        ratios = [group["lr"] / trained.param_groups[0]["lr"] for group in trained.param_groups]
        average, best = 0.0, math.inf
        endless = _again_and_again(batches)
        for step in tqdm(range(num_steps), desc="learning rates", unit="step"):
            lr = low * (high / low) ** (step / max(1, num_steps - 1))
            for group, ratio in zip(trained.param_groups, ratios, strict=True):
                group["lr"] = lr * ratio
            loss = loss_of(trial, next(endless), step)
            average = SMOOTHING * average + (1 - SMOOTHING) * loss.item()
            smooth = average / (1 - SMOOTHING ** (step + 1))
            if not math.isfinite(smooth) or smooth > diverged * best:
                break
            best = min(best, smooth)
            lrs.append(lr)
            losses.append(smooth)
            trained.zero_grad()
            loss.backward()
            trained.step()
    return LrCurve(lrs=tuple(lrs), losses=tuple(losses), suggestion=_steepest(lrs, losses))


def _again_and_again(batches: Iterable[Batch]) -> Iterator[Batch]:
    while True:
        yield from batches


def _steepest(lrs: list[float], losses: list[float]) -> float | None:
    """The rate where the loss falls fastest against the logarithm of the rate, on the way to its minimum: what falls behind
    that is the swinging of a loss that already climbs."""
    start, stop = max(1, int(SKIPPED * len(lrs))), losses.index(min(losses)) if losses else 0
    slopes = [(losses[i + 1] - losses[i - 1], lrs[i]) for i in range(start, stop)]
    slope, lr = min(slopes, default=(0.0, None))
    return lr if slopes and slope < -ROUNDING * abs(losses[0]) else None
