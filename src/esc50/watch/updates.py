"""Are the steps of the right size? The gradient's norm, and how far a step moves the weights compared with their size."""

from collections.abc import Iterable, Sequence
from typing import Any

import lightning as L
import torch
from torch import Tensor
from torch.optim import Optimizer

from esc50.config.kinds import PositiveInt
from esc50.watch.layers import is_shown


class Updates(L.Callback):
    """Writes every n-th step `grad/norm`, the norm of all gradients before any clipping, and `update/ratio_<group>` of
    every parameter group that learns: the norm of the weights' change in this step over the norm of the weights."""

    def __init__(self, *, every_n_steps: PositiveInt):
        assert every_n_steps >= 1
        self.every_n_steps = every_n_steps
        self._before: dict[str, list[tuple[Tensor, Tensor]]] = {}
        self._norm: Tensor | None = None
        self._step = 0

    def on_before_optimizer_step(self, trainer: L.Trainer, pl_module: L.LightningModule, optimizer: Optimizer) -> None:
        if not is_shown(trainer, self.every_n_steps):
            return
        learning = {
            group["name"]: [parameter for parameter in group["params"] if parameter.grad is not None]
            for group in optimizer.param_groups
        }
        self._before = {
            name: [(parameter.detach(), parameter.detach().clone()) for parameter in parameters]
            for name, parameters in learning.items()
            if parameters
        }
        self._norm = total_norm(parameter.grad for parameters in learning.values() for parameter in parameters)
        self._step = trainer.global_step

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._norm is None:
            return
        assert trainer.logger is not None
        ratios = [update_ratio(*zip(*pairs, strict=True)) for pairs in self._before.values()]
        norm, *values = torch.stack([self._norm, *ratios]).tolist()
        tags = [f"update/ratio_{name}" for name in self._before]
        trainer.logger.log_metrics({"grad/norm": norm, **dict(zip(tags, values, strict=True))}, step=self._step)
        self._before, self._norm = {}, None


def total_norm(tensors: Iterable[Tensor]) -> Tensor:
    """The Euclidean norm of all values of all tensors, a scalar."""
    return torch.nn.utils.get_total_norm([tensor.detach() for tensor in tensors])


def update_ratio(after: Sequence[Tensor], before: Sequence[Tensor]) -> Tensor:
    """How far the weights moved compared with their size, a scalar; 0 where there was nothing to move."""
    size = total_norm(before)
    moved = total_norm(new - old for new, old in zip(after, before, strict=True))
    return torch.where(size > 0, moved / size, torch.zeros_like(size))
