"""Does every layer learn? Smallest, mean and largest gradient of each, a histogram, and a word where they vanish or explode."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import lightning as L
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from esc50.config.kinds import NonNegative, Positive, PositiveInt
from esc50.training.task import Classifier
from esc50.watch.events import writer_of
from esc50.watch.layers import is_shown, sample, warn_once, watched_layers, write_histograms

log = logging.getLogger(__name__)


class Gradients(L.Callback):
    """Writes `grad/<layer>/min`, `/mean`, `/max` and the histogram `grad/<layer>` of every n-th step, before any clipping;
    where gradients are not finite, their number `grad/<layer>/nan_count` instead. A frozen layer has none.

    `layers`: patterns of names as in `watched_layers`, or None. The log names once each layer with gradients that are not
    finite, that have a norm above `explode_above`, or that are all smaller than `vanish_below` in `steps_in_a_row` shown
    steps one after the other.
    """

    def __init__(
        self,
        *,
        every_n_steps: PositiveInt,
        layers: str | Sequence[str] | None,
        vanish_below: NonNegative,
        explode_above: Positive,
        steps_in_a_row: PositiveInt,
    ):
        assert every_n_steps >= 1 and steps_in_a_row >= 1
        self.every_n_steps, self.layers = every_n_steps, layers
        self.vanish_below, self.explode_above, self.steps_in_a_row = vanish_below, explode_above, steps_in_a_row
        self._watched: dict[str, nn.Module] = {}
        self._vanished_for: dict[str, int] = {}  # shown steps in a row
        self._warned: set[str] = set()
        self._warn = partial(warn_once, log, self._warned)

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if trainer.logger is not None:
            self._watched = watched_layers(cast(Classifier, pl_module).model, self.layers)

    def on_before_optimizer_step(self, trainer: L.Trainer, pl_module: L.LightningModule, optimizer: Optimizer) -> None:
        if not is_shown(trainer, self.every_n_steps):
            return
        found = {
            name: measure(gradients)
            for name, layer in self._watched.items()
            if (gradients := [parameter.grad for parameter in layer.parameters() if parameter.grad is not None])
        }
        self._judge(found, trainer.global_step)
        scalars: dict[str, float] = {}
        samples: dict[str, Tensor] = {}
        for name, of_layer in found.items():
            if of_layer.nan_count:
                scalars[f"grad/{name}/nan_count"] = of_layer.nan_count
                continue
            scalars |= {f"grad/{name}/min": of_layer.min, f"grad/{name}/mean": of_layer.mean, f"grad/{name}/max": of_layer.max}
            samples[f"grad/{name}"] = of_layer.sample
        assert trainer.logger is not None
        trainer.logger.log_metrics(scalars, step=trainer.global_step)
        write_histograms(writer_of(trainer), samples, trainer.global_step)

    def _judge(self, found: Mapping[str, "OfLayer"], step: int) -> None:
        less = "try a lower optimizer.lr, or trainer.gradient_clip=1"
        self._warn(
            [name for name, of_layer in found.items() if of_layer.nan_count], f"gradients are not finite at step {step}; {less}"
        )
        for name, of_layer in found.items():
            if of_layer.norm > self.explode_above and not of_layer.nan_count:
                self._warn([name], f"gradients explode, their norm is {of_layer.norm:.2g} at step {step}; {less}")
            vanished = max(-of_layer.min, of_layer.max) < self.vanish_below
            self._vanished_for[name] = self._vanished_for.get(name, 0) + 1 if vanished else 0
            if self._vanished_for[name] >= self.steps_in_a_row:
                self._warn(
                    [name],
                    f"gradients vanish, none was as large as {self.vanish_below:g} in {self.steps_in_a_row} shown"
                    f" steps in a row up to step {step}; this layer does not learn any more",
                )


@dataclass(frozen=True, kw_only=True, eq=False)
class OfLayer:
    """The gradients of all parameters of a layer. `nan_count`: values that are not finite; if any, the others mean nothing.
    `sample` `[samples]` stands for all values."""

    nan_count: int
    min: float
    mean: float
    max: float
    norm: float
    sample: Tensor


@torch.no_grad()
def measure(gradients: Sequence[Tensor]) -> OfLayer:
    """Measure gradients of any shapes, one or more, as one heap of numbers."""
    heap = torch.cat([gradient.flatten().float() for gradient in gradients])
    low, mean, high, norm = torch.stack([heap.min(), heap.mean(), heap.max(), torch.linalg.vector_norm(heap)]).tolist()
    nan_count = 0 if math.isfinite(norm) else int((~torch.isfinite(heap)).sum())
    return OfLayer(nan_count=nan_count, min=low, mean=mean, max=high, norm=norm, sample=sample(heap))
