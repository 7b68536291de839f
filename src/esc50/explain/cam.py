"""Class activation maps: which part of the sound speaks for a class."""

import contextlib
import difflib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from esc50.errors import ConfigError, require
from esc50.models.network import Listening
from esc50.training.precision import in_float32

MAX_NAMED = 12  # layers that an error lists


def grad_cam(
    model: nn.Module, x: Tensor, targets: Sequence[int] | Tensor | None = None, *, layer: str | None = None
) -> np.ndarray:
    """Grad-CAM (Selvaraju et al. 2017, arXiv 1610.02391) of each clip for the class `targets`, `[batch]` (None: the
    predicted one), in the input's resolution.

    `model` gives a dict with `logits`; `x` is what it reads, `[batch, channels, mel, frames]` or `[batch, time]`. `layer`
    names the module whose feature map is weighed; None takes the last one. Returns float32 `[batch, mel, frames]` or
    `[batch, time]` within 0..1, where 1 is the strongest place of the clip; all zeros where nothing speaks for the class.

    Works under `torch.no_grad` and `torch.inference_mode`, on frozen and on compiled models, and leaves the model and the
    random state as they were. Raises ConfigError where `layer` makes no feature map, or captum is not installed (extra:
    explain).
    """
    require("a map of where the network looks", "captum")
    from captum.attr import LayerGradCam

    def logits_of(inputs: Tensor) -> Tensor:
        return model(inputs)["logits"]

    with torch.inference_mode(False), torch.enable_grad(), _undisturbed(model, x.device), in_float32(x.device.type):
        x = x.detach().clone()  # outside of inference mode this is a tensor that gradients can flow to
        maps, logits = _feature_maps(model, x)
        name = _chosen(maps, layer)
        targets = logits.argmax(dim=1) if targets is None else torch.as_tensor(targets, device=x.device)
        coarse = LayerGradCam(logits_of, model.get_submodule(name)).attribute(x, target=targets, relu_attributions=True)
    return _spread(coarse.detach(), x)


def feature_layers(model: nn.Module, x: Tensor) -> tuple[str, ...]:
    """Names of the modules that make a feature map of `x`, in the order in which they finish: the last one is what
    `grad_cam` takes of its own accord."""
    with torch.inference_mode(False), _undisturbed(model, x.device), in_float32(x.device.type):
        return tuple(_feature_maps(model, x.detach().clone())[0])


def check_layer(model: nn.Module, x: Tensor, layer: str) -> None:
    """Raise ConfigError where `layer` makes no feature map of `x`, naming some that do."""
    _chosen(feature_layers(model, x), layer)


@torch.no_grad()
def model_input(network: Listening, stored: np.ndarray) -> Tensor:
    """What the model reads of stored values `[batch, ...]`, on its device."""
    device = network.front_end.mean.device
    return network.laid_out(network.front_end(torch.from_numpy(stored).to(device)))


@torch.no_grad()
def _feature_maps(model: nn.Module, x: Tensor) -> tuple[dict[str, None], Tensor]:
    """Modules that make a feature map, in the order in which they finish (of several times the last), and the logits."""
    found: dict[str, None] = {}

    def note(name: str, output: object) -> None:
        if _is_feature_map(output, x):
            found.pop(name, None)
            found[name] = None

    handles = [
        module.register_forward_hook(lambda module, inputs, output, name=name: note(name, output))
        for name, module in model.named_modules()
        if name
    ]
    try:
        logits = model(x)["logits"]
    finally:
        for handle in handles:
            handle.remove()
    return found, logits


def _is_feature_map(output: object, x: Tensor) -> bool:
    """`[batch, channels, height, width]` with more than one place, or for waveforms `[batch, channels, time]` too."""
    dims = (3, 4) if x.dim() == 2 else (4,)
    return (
        isinstance(output, Tensor)
        and output.is_floating_point()
        and output.dim() in dims
        and output.shape[0] == x.shape[0]
        and output.shape[2:].numel() > 1
    )


def _chosen(names: Sequence[str] | dict[str, None], layer: str | None) -> str:
    names = list(names)
    if layer in names:
        return layer
    if not names:
        raise ConfigError(
            "this model makes no feature map with places in time or frequency, so there is no map of where it looks"
        )
    if layer is None:
        return names[-1]
    near = difflib.get_close_matches(layer, names, n=1)
    more = f" and {len(names) - MAX_NAMED} before them" if len(names) > MAX_NAMED else ""
    raise ConfigError(
        f"layer={layer}: the model has no layer of that name that makes a feature map;"
        f"{f' did you mean {near[0]}?' if near else ''} wanted null (the last one) or one of"
        f" {', '.join(reversed(names[-MAX_NAMED:]))}{more}"
    )


def _spread(coarse: Tensor, x: Tensor) -> np.ndarray:
    """A layer's map `[batch, 1, ...]` at the size of the input, divided by each clip's maximum."""
    size = x.shape[-2:] if x.dim() == 4 else (1, x.shape[-1])
    maps = F.interpolate(
        coarse.reshape(len(x), 1, *coarse.shape[2:]) if coarse.dim() == 4 else coarse[:, :, None],
        size=tuple(size),
        mode="bilinear",
        align_corners=False,
    )
    maps = maps.float().nan_to_num(nan=0.0, posinf=0.0)  # of a diverged model: it speaks for nothing
    highest = maps.amax(dim=(1, 2, 3), keepdim=True)
    maps = torch.where(highest > 0, maps / highest, 0.0)
    return maps[:, 0].cpu().numpy() if x.dim() == 4 else maps[:, 0, 0].cpu().numpy()


@contextlib.contextmanager
def _undisturbed(model: nn.Module, device: torch.device) -> Iterator[None]:
    """In here the model is in evaluation mode and not compiled (hooks on layers are blind to a compiled network); mode and
    random state come back."""
    modules = list(model.modules())
    training = [module.training for module in modules]
    compiled = [module._compiled_call_impl for module in modules]
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        try:
            model.eval()
            for module in modules:
                if module._compiled_call_impl is not None:
                    module._compiled_call_impl = None
            yield
        finally:
            for module, was_training, call in zip(modules, training, compiled, strict=True):
                module.training = was_training
                if call is not None:
                    module._compiled_call_impl = call
