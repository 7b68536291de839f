"""What panels of layers share: which layers and which steps are shown, and how their values become a histogram."""

import logging
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import lightning as L
import torch
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter

from esc50.errors import ConfigError

MOST_BLOCKS = 20  # of a network that are shown unless a pattern asks for others; more would not be looked at
MOST_VALUES = 2**13  # of a histogram
BINS = 64  # TensorBoard draws 30
GOLDEN = 0.6180339887498949  # multiples of it, less their whole part, are spread evenly whatever period the values have
ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Mish, nn.Hardswish)


def is_shown(trainer: L.Trainer, every_n_steps: int) -> bool:
    """Whether the step that is being made is an n-th one and there is somebody to show it to."""
    return trainer.logger is not None and trainer.is_global_zero and trainer.global_step % every_n_steps == 0


def watched_layers(model: nn.Module, patterns: str | Sequence[str] | None) -> dict[str, nn.Module]:
    """Modules of `model` by name: those that a pattern like `blocks.*` or `*.conv1` fits (`*` goes across dots), or without
    one its leaf blocks. Raises ConfigError where nothing fits."""
    if patterns is None:
        return leaf_blocks(model)
    wanted = [patterns] if isinstance(patterns, str) else patterns
    found = {
        name: module for name, module in model.named_modules() if name and any(fnmatchcase(name, pattern) for pattern in wanted)
    }
    if not found:
        raise ConfigError(
            f"no layer of the network has a name like {' or '.join(wanted)}, as a panel's key layers wants; the"
            f" coarse ones are {', '.join(leaf_blocks(model))}, and null watches these"
        )
    return found


def leaf_blocks(model: nn.Module) -> dict[str, nn.Module]:
    """The finest division of `model` into at most MOST_BLOCKS blocks with weights.

    A module with one weight (a convolution with its normalisation and activation) is not divided; all others are replaced by
    their children, level after level, as long as there are not too many. An activation that stands among them is listed too.
    """
    blocks = _children("", model)
    while True:
        finer: dict[str, nn.Module] = {}
        for name, module in blocks.items():
            finer |= (_num_weights(module) > 1 and _children(f"{name}.", module)) or {name: module}
        if finer.keys() == blocks.keys() or sum(_num_weights(module) > 0 for module in finer.values()) > MOST_BLOCKS:
            return blocks
        blocks = finer


def _children(prefix: str, module: nn.Module) -> dict[str, nn.Module]:
    children = {f"{prefix}{name}": child for name, child in module.named_children()}
    if not any(_num_weights(child) for child in children.values()):
        return {}
    return {name: child for name, child in children.items() if _num_weights(child) or isinstance(child, ACTIVATIONS)}


def _num_weights(module: nn.Module) -> int:
    """Matrices and kernels; a bias or a normalisation's scale is no weight of its own."""
    return sum(parameter.dim() > 1 for parameter in module.parameters())


def sample(values: Tensor) -> Tensor:
    """`values` of any shape as at most MOST_VALUES of them `[samples]`, evenly spread and always the same ones."""
    in_memory = sorted(range(values.dim()), key=values.stride, reverse=True)  # so that flattening copies nothing
    flat = values.permute(in_memory).reshape(-1)
    if len(flat) <= MOST_VALUES:
        return flat
    places = torch.arange(MOST_VALUES, dtype=torch.float64) * GOLDEN % 1 * len(flat)
    return flat[places.long().to(flat.device)]


def write_histograms(writer: SummaryWriter, samples: Mapping[str, Tensor], step: int) -> None:
    """Add a histogram a tag; `samples`: `[samples]` each, finite."""
    fetched = torch.cat([values.float() for values in samples.values()]).cpu() if samples else torch.empty(0)
    for tag, values in zip(samples, fetched.split([len(values) for values in samples.values()]), strict=True):
        writer.add_histogram(tag, values, step, bins=BINS)


def warn_once(log: logging.Logger, warned: set[str], names: Sequence[str], finding: str) -> None:
    """Name each layer once a run, all of a finding in one line: where one is broken, others are too. `warned` remembers."""
    if new := [name for name in names if name not in warned]:
        warned.update(new)
        log.warning("layer %s: %s", ", ".join(new), finding)
