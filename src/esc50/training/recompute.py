"""Gradient checkpointing: forget what a block computed and compute it again on the way back; memory for time."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint


def checkpoint_blocks(model: nn.Module) -> int:
    """Make every block of `model` recompute its activations in the backward pass (Chen et al. 2016, arXiv 1604.06174).

    Blocks are the children of `model.blocks`, else of the outermost `nn.Sequential`s of the body. Gradients, dropout and
    batch normalisation's statistics are those of the plain model. Returns the number of blocks.
    """
    containers = [model.get_submodule("blocks")] if hasattr(model, "blocks") else [*_outermost(model.get_submodule("body"))]
    blocks = [block for container in containers for block in container.children() if any(True for _ in block.parameters())]
    for block in blocks:
        block.forward = functools.partial(_recomputed, block, block.forward)
    return len(blocks)


def _recomputed(block: nn.Module, forward: Callable[..., Any], *inputs: Tensor) -> Any:
    if not block.training:
        return forward(*inputs)
    # Not the reentrant way: that one gives no gradients where the input needs none, as in the first block.
    return checkpoint(
        forward,
        *inputs,
        use_reentrant=False,
        preserve_rng_state=True,
        context_fn=lambda: (contextlib.nullcontext(), _without_statistics(block)),
    )


@contextlib.contextmanager
def _without_statistics(block: nn.Module) -> Iterator[None]:
    """The second computation must not move the running statistics once more."""
    norms = [module for module in block.modules() if isinstance(module, _BatchNorm) and module.track_running_stats]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
            assert norm.num_batches_tracked is not None  # a batch was counted
            norm.num_batches_tracked.sub_(1)


def _outermost(module: nn.Module) -> Iterator[nn.Sequential]:
    for child in module.children():
        if isinstance(child, nn.Sequential):
            yield child
        else:
            yield from _outermost(child)
