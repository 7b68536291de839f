"""What does gradient checkpointing save, and what does it cost?"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from esc50.benchmarks.step import bare_loop
from esc50.benchmarks.timing import Measurement, medians, take_turns
from esc50.training.recompute import checkpoint_blocks
from esc50.training.task import Classifier

MB = 1e6


def measure_recompute(
    name: str, *, make_task: Callable[[], Classifier], stored: Tensor, target: Tensor, precision: str, rounds: int
) -> Measurement:
    """Megabytes that a training step of model `name` keeps for the gradient, and milliseconds a step, with and without;
    on a GPU the peak of its memory too."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tasks = {"plain": make_task().to(device), "checkpointed": make_task().to(device)}
    checkpoint_blocks(tasks["checkpointed"].model)
    stored, target = stored.to(device), target.to(device)
    loops = {
        way: bare_loop(task, stored, target, bfloat16=precision == "bfloat16", channels_last=True, steps=1)
        for way, task in tasks.items()
    }
    middle = medians(take_turns(loops, rounds=rounds))
    kept = {
        way: kept_for_gradient(task.model, task.laid_out(task.front_end(stored)), bfloat16=precision == "bfloat16") / MB
        for way, task in tasks.items()
    }
    rows = [(f"{way}, kept for the gradient", kept[way], "MB") for way in tasks]
    rows += [(f"{way}, one step", 1000 * middle[way], "ms") for way in tasks]
    if device.type == "cuda":
        rows += [(f"{way}, peak of the GPU's memory", _peak(loop) / MB, "MB") for way, loop in loops.items()]
    return Measurement(
        title=f"Gradient checkpointing, {name}, batch of {len(stored)}",
        rows=tuple(rows),
        ratios={
            f"recompute_{name}_memory_time": kept["checkpointed"] / kept["plain"],
            f"recompute_{name}_step_time": middle["checkpointed"] / middle["plain"],
        },
        note="one block's activations and every block's input are still kept; the forward pass runs twice",
    )


def kept_for_gradient(model: nn.Module, x: Tensor, *, bfloat16: bool) -> int:
    """Bytes of the tensors that a forward pass keeps for the backward pass, each counted once, without the weights."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    sizes: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast(x.device.type, torch.bfloat16, enabled=bfloat16),
    ):
        logits = model.train()(x)["logits"]
    total = sum(sizes.values())
    assert logits.requires_grad
    return total


def _peak(loop: Callable[[], None]) -> int:
    torch.cuda.reset_peak_memory_stats()
    loop()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated()
