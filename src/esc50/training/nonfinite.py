"""Which numbers broke? The place where a network's numbers first stop being finite."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def first_bad_weight(module: nn.Module, *, with_buffers: bool) -> str | None:
    """Name of the first parameter, then buffer, that holds NaN or infinity; None where there is none."""
    named = [*module.named_parameters(), *(module.named_buffers() if with_buffers else ())]
    tensors = [(name, tensor) for name, tensor in named if tensor.is_floating_point()]
    if not tensors:
        return None
    finite = torch.stack([torch.isfinite(tensor.detach()).all() for _, tensor in tensors]).tolist()
    return next((name for (name, _), good in zip(tensors, finite, strict=True) if not good), None)


def where_it_broke(model: nn.Module, x: Tensor) -> str:
    """In words: the input, a weight, or the first layer whose output is not finite for `x`, in the model's present mode.

    Runs the model once more; its buffers are those of before afterwards.
    """
    if not torch.isfinite(x).all():
        return "its input is not finite already"
    # Not the buffers: batch normalisation's statistics have broken in this very step, and do not matter in training.
    if (name := first_bad_weight(model, with_buffers=False)) is not None:
        return f"the weights {name} are not finite since an earlier step"
    first: list[str] = []
    with _watched(model, first), torch.no_grad():
        buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
        model(x)
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])
    return f"the first layer that is not finite is {first[0]}" if first else "every layer is finite, the loss itself is not"


@contextmanager
def _watched(model: nn.Module, first: list[str]) -> Iterator[None]:
    def hook(name: str) -> Callable[[nn.Module, tuple, object], None]:
        def look(module: nn.Module, inputs: tuple, output: object) -> None:
            if not first and isinstance(output, Tensor) and not torch.isfinite(output).all():
                first.append(f"{name} ({type(module).__name__})")

        return look

    handles = [
        module.register_forward_hook(hook(name))
        for name, module in model.named_modules()
        if not any(True for _ in module.children())
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
