"""Any classifier of torchvision or timm, with a new head for the classes at hand."""

import os
import socket
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from esc50.config.kinds import PositiveInt, Share
from esc50.errors import ConfigError, DataError, require
from esc50.models.probe import accepts

if TYPE_CHECKING:
    from torchvision.models import WeightsEnum

IMAGENET_CLASSES = 1000
PROBE_SIZE = (128, 352)  # no network was made for this size: one that takes it takes any
FIXED_SIZE = (224, 224)  # of the pictures that torchvision's networks of fixed size are built for


def make_head(num_features: int, *, num_classes: int, hidden: int | None, dropout: float) -> nn.Module:
    """The book's head (chapter 4): Linear `hidden`, ReLU, Dropout, Linear; without `hidden`, Dropout and one Linear."""
    if hidden is None:
        return nn.Sequential(nn.Dropout(dropout), nn.Linear(num_features, num_classes))
    return nn.Sequential(nn.Linear(num_features, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, num_classes))


class _Pretrained(nn.Module):
    """A network for pictures without its classifier, and a new head.

    Takes `[batch, 1 or 3, mel, frames]`; one channel is repeated to three. `size`: resize to (height, width) first, for
    networks that know one size only.
    """

    def __init__(self, body: nn.Module, head: nn.Module, *, size: tuple[int, int] | None):
        super().__init__()
        self.body, self.head, self.size = body, head, size

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        if x.shape[1] == 1:
            x = x.expand(-1, 3, -1, -1)
        if self.size is not None:
            x = F.interpolate(x, self.size, mode="bilinear", antialias=True)
        embedding = self.body(x).flatten(1)
        return {"logits": self.head(embedding), "embedding": embedding}


class TorchvisionNet(_Pretrained):
    """`name` of `torchvision.models`; `weights` is one of its weights (DEFAULT, IMAGENET1K_V1...) or None.

    The classifier is found as the last layer with 1000 outputs. Auxiliary classifiers are left out. Raises ConfigError for
    names unknown to torchvision, DataError where the weights are neither in torch's cache nor to be downloaded.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        name: str,
        weights: str | None = "DEFAULT",
        hidden: PositiveInt | None = None,
        dropout: Share = 0.5,
        in_channels: int = 3,
    ):
        from torchvision import models

        known = models.list_models(module=models)
        if name not in known:
            raise ConfigError(
                f"model.name={name}: torchvision has no such classifier; resnet18, densenet161 and"
                f" efficientnet_b0 are three of the {len(known)} it has"
            )
        of_name = models.get_model_weights(name)
        if weights is not None and weights not in of_name.__members__:
            raise ConfigError(f"model.weights={weights}: {name} has {', '.join(of_name.__members__)}, or null for none")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # two networks announce another initialisation to come
            body = models.get_model(name, weights=None)
        size = None if accepts(body, (1, 3, *PROBE_SIZE)) else FIXED_SIZE
        if weights is not None:
            _check_size(weights, of_name, name, size)
            body.load_state_dict(fetch_weights(of_name[weights].url, name))
        if hasattr(body, "transform_input"):
            # Two networks were trained on another scale than ImageNet's. torchvision sets this only where it loads the
            # weights itself, and the network of a checkpoint is built without.
            body.transform_input = True
        num_features = _without_classifier(body)
        super().__init__(body, make_head(num_features, num_classes=num_classes, hidden=hidden, dropout=dropout), size=size)


class TimmNet(_Pretrained):
    """`name` of timm; `weights` DEFAULT for its pre-trained ones, None to start from scratch (extra: timm)."""

    def __init__(
        self,
        *,
        num_classes: int,
        name: str,
        weights: str | None = "DEFAULT",
        hidden: PositiveInt | None = None,
        dropout: Share = 0.5,
        in_channels: int = 3,
    ):
        require("a network of timm", "timm")
        if weights is not None:
            _fail_quickly_offline()
        import timm

        if not timm.is_model(name):
            raise ConfigError(f"model.name={name}: timm has no such model; timm.list_models() names them")
        try:
            body: Any = timm.create_model(name, pretrained=weights is not None, num_classes=0)
        except Exception as error:  # the hub's client raises many kinds, all of them for want of the file
            raise DataError(
                f"the weights of {name} are not in timm's cache and could not be downloaded"
                f" ({type(error).__name__}); model.weights=null trains from scratch"
            ) from None
        config = body.pretrained_cfg
        # Some nets have a layer between their features and the classifier, which stays.
        num_features = getattr(body, "head_hidden_size", body.num_features)
        head = make_head(num_features, num_classes=num_classes, hidden=hidden, dropout=dropout)
        super().__init__(body, head, size=tuple(config["input_size"][-2:]) if not accepts(body, (1, 3, *PROBE_SIZE)) else None)


def _check_size(weights: str, of_name: "type[WeightsEnum]", name: str, size: tuple[int, int] | None) -> None:
    """Raise ConfigError for weights that a network of fixed size has for larger pictures only."""
    if size is None:
        return
    fitting = [key for key, value in of_name.__members__.items() if value.meta["min_size"] <= size]
    if weights not in fitting:
        raise ConfigError(
            f"model.weights={weights}: {name} is built for pictures of {size[0]} x {size[1]}, these weights"
            f" need {of_name[weights].meta['min_size'][0]}; choose one of {', '.join(fitting)}"
        )


def fetch_weights(url: str, name: str) -> dict[str, Tensor]:
    """State dict from torch's cache, else downloaded into it. Raises DataError saying where the file should lie."""
    path = Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
    try:
        return torch.hub.load_state_dict_from_url(url, map_location="cpu", check_hash=True, weights_only=True)
    except Exception as error:  # of the network, or one of the many that torch has for a file that is not its own
        reason = next(iter(str(getattr(error, "reason", error)).splitlines()), type(error).__name__)
        raise DataError(
            f"the ImageNet weights of {name} could not be fetched from {url} ({reason}); put the file at {path},"
            " or train from scratch with model.weights=null"
        ) from None


def _fail_quickly_offline() -> None:
    """Without a network the hub's client would retry for most of a minute; told to be offline it looks in its cache only.
    It reads the variable when it is first imported."""
    try:
        socket.getaddrinfo("huggingface.co", 443)
    except OSError:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")


def _without_classifier(body: nn.Module) -> int:
    """Replace the last layer with 1000 outputs by nothing and drop auxiliary classifiers; return its number of inputs."""
    for name, _ in list(body.named_children()):
        if name.lower().startswith("aux"):
            setattr(body, name, None)
            body.aux_logits = False  # type: ignore[assignment]  # torch declares tensors and modules only
    classifier = None
    for name, module in body.named_modules():
        if getattr(module, "out_features", getattr(module, "out_channels", None)) == IMAGENET_CLASSES:
            classifier = name, module
    assert classifier is not None, "no layer with 1000 outputs"
    name, module = classifier
    body.set_submodule(name, nn.Identity())
    return module.in_features if isinstance(module, nn.Linear) else module.in_channels
