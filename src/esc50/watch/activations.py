"""Are the layers alive? What comes out of each: mean, standard deviation, share of zeros and a histogram."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, cast

import lightning as L
import torch
from torch import Tensor, nn

from esc50.config.kinds import PositiveInt, Share
from esc50.errors import TrainingError
from esc50.training.task import Classifier
from esc50.watch.events import writer_of
from esc50.watch.layers import ACTIVATIONS, is_shown, sample, warn_once, watched_layers, write_histograms

log = logging.getLogger(__name__)

CACHED = 2**18  # values that are measured together: a CPU takes ten times as long for what does not fit its cache
AT_ONCE = 2**24  # on other devices, where many small pieces take longer


class Activations(L.Callback):
    """Writes `activation/<layer>/mean`, `/std`, `/zeros` and the histogram `activation/<layer>` of every n-th step; where
    values are not finite, their number `activation/<layer>/nan_count` instead.

    `layers`: patterns of names as in `watched_layers`, or None. The log names once each layer that gives values that are not
    finite, or whose dead units are more than the share `dead_above`: those that gave 0 for every clip and position of
    `steps_in_a_row` shown steps one after the other.
    """

    def __init__(
        self, *, every_n_steps: PositiveInt, layers: str | Sequence[str] | None, dead_above: Share, steps_in_a_row: PositiveInt
    ):
        assert every_n_steps >= 1 and steps_in_a_row >= 1
        self.every_n_steps, self.layers = every_n_steps, layers
        self.dead_above, self.steps_in_a_row = dead_above, steps_in_a_row
        self._watched: dict[str, nn.Module] = {}
        self._hooks: list[Any] = []
        self._outputs: dict[str, Outputs] = {}
        self._silent_for: dict[str, Tensor] = {}  # shown steps in a row, of each unit of a layer
        self._warned: set[str] = set()
        self._warn = partial(warn_once, log, self._warned)

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if trainer.logger is None:
            return
        model = cast(Classifier, pl_module).model
        if is_compiled(model):
            log.info("no activations in TensorBoard: trainer.compile=true makes one piece of the layers")
            return
        layers = watched_layers(model, self.layers)
        self._watched = without_inputs(layers) if self.layers is None else layers

    def on_train_batch_start(self, trainer: L.Trainer, pl_module: L.LightningModule, batch: Any, batch_idx: int) -> None:
        if batch_idx % trainer.accumulate_grad_batches == 0 and is_shown(trainer, self.every_n_steps):
            self._hooks = [layer.register_forward_hook(self._hook(name)) for name, layer in self._watched.items()]

    def on_before_backward(self, trainer: L.Trainer, pl_module: L.LightningModule, loss: Tensor) -> None:
        if self._hooks:
            self._finish(trainer)

    def on_exception(self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException) -> None:
        if self._hooks and isinstance(exception, TrainingError):  # of a loss that is not finite, where they matter most
            self._finish(trainer)
        self._take_hooks_away()

    def _hook(self, name: str) -> Callable:
        def look(layer: nn.Module, inputs: Any, output: Any) -> None:
            if isinstance(output, Tensor) and output.is_floating_point() and output.dim() > 1 and output.numel():
                self._outputs[name] = measure(output)  # at once: what follows may write into it

        return look

    def _take_hooks_away(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._outputs = [], {}

    def _finish(self, trainer: L.Trainer) -> None:
        """Before the way back, on which recomputed blocks run once more."""
        outputs = self._outputs
        self._take_hooks_away()
        scalars: dict[str, float] = {}
        samples: dict[str, Tensor] = {}
        for name, found in outputs.items():
            if found.nan_count:
                scalars[f"activation/{name}/nan_count"] = found.nan_count
                continue
            scalars |= {
                f"activation/{name}/mean": found.mean,
                f"activation/{name}/std": found.std,
                f"activation/{name}/zeros": found.zeros,
            }
            samples[f"activation/{name}"] = found.sample
            self._look_for_dead(name, found)
        self._warn(
            [name for name, found in outputs.items() if found.nan_count],
            f"activations are not finite at step {trainer.global_step}; try a lower optimizer.lr, or trainer.gradient_clip=1",
        )
        assert trainer.logger is not None
        trainer.logger.log_metrics(scalars, step=trainer.global_step)
        write_histograms(writer_of(trainer), samples, trainer.global_step)

    def _look_for_dead(self, name: str, found: "Outputs") -> None:
        before = self._silent_for.get(name)
        self._silent_for[name] = found.silent.int() if before is None else (before + 1) * found.silent
        if name in self._warned or found.zeros <= self.dead_above:  # dead units alone make as many zeros
            return
        dead = (self._silent_for[name] >= self.steps_in_a_row).float().mean().item()
        if dead > self.dead_above:
            self._warn(
                [name],
                f"{dead:.0%} of {len(found.silent)} units are dead, they gave 0 for every clip of"
                f" {self.steps_in_a_row} shown steps in a row; try a lower optimizer.lr",
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class Outputs:
    """What came out of a layer: `zeros` is a share, `silent` `[units]` says of each unit whether all it gave was 0, `sample`
    `[samples]` stands for all values. `nan_count`: values that are not finite; if any, the others mean nothing."""

    nan_count: int
    mean: float
    std: float
    zeros: float
    silent: Tensor
    sample: Tensor


@torch.no_grad()
def measure(output: Tensor) -> Outputs:
    """Measure an output `[batch, units, ...]`, which is only read."""
    values = output.detach()
    most = CACHED if values.device.type == "cpu" else AT_ONCE
    clips_a_piece = max(1, most * len(values) // values.numel())
    counts, zeros, means, sizes = [], [], [], []
    for piece in values.split(clips_a_piece):
        rows = piece.movedim(1, -1).reshape(-1, values.shape[1]).float()
        counts.append(rows.numel())
        zeros.append(torch.eq(rows, 0, out=torch.empty_like(rows)).sum(dim=0))  # a CPU counts bools ten times as slowly
        means.append(rows.mean())
        sizes.append(torch.linalg.vector_norm(rows - means[-1]))
    # From each piece's spread about its own mean, since a sum of squares loses a small spread about a large mean.
    share = torch.tensor(counts, device=values.device) / values.numel()
    mean = (share * torch.stack(means)).sum()
    variance = (torch.stack(sizes).square() / values.numel() + share * (torch.stack(means) - mean).square()).sum()
    silent = torch.stack(zeros).sum(dim=0) == values.numel() // values.shape[1]
    mean, std, zeros = torch.stack([mean, variance.sqrt(), torch.stack(zeros).sum() / values.numel()]).tolist()
    nan_count = 0 if math.isfinite(std) else int((~torch.isfinite(values)).sum())
    return Outputs(nan_count=nan_count, mean=mean, std=std, zeros=zeros, silent=silent, sample=sample(values))


def without_inputs(layers: dict[str, nn.Module]) -> dict[str, nn.Module]:
    """Leave out a single layer that stands right before an activation of the same module: it is seen behind that."""
    following = dict(pairwise(layers))

    def is_input(name: str) -> bool:
        behind = following.get(name)
        return (
            behind is not None
            and isinstance(layers[behind], ACTIVATIONS)
            and not any(layers[name].children())
            and behind.rpartition(".")[0] == name.rpartition(".")[0]
        )

    return {name: layer for name, layer in layers.items() if not is_input(name)}


def is_compiled(model: nn.Module) -> bool:
    """Whether torch.compile has a hand in it. Hooks may then not be called, or be compiled in and stay for good."""
    return any(module._compiled_call_impl is not None for module in model.modules())
