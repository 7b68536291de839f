"""From a configuration to the network alone, without a way of learning. Free of Lightning."""

from omegaconf import DictConfig
from torch import nn

from esc50.assembly.data import build_recipe, component
from esc50.errors import ConfigError
from esc50.features.front_end import FrontEnd
from esc50.models.network import Network
from esc50.models.probe import accepts


def build_front_end(cfg: DictConfig) -> FrontEnd:
    """From stored values to what the model reads."""
    return FrontEnd(build_recipe(cfg), normalization=cfg.features.normalize)


def build_model(cfg: DictConfig, front_end: FrontEnd, *, num_classes: int) -> nn.Module:
    """The network as its option names it."""
    model: nn.Module = component(cfg, "model", num_classes=num_classes, in_channels=front_end.num_channels)
    return model


def check_size(model: nn.Module, front_end: FrontEnd) -> None:
    """Raise ConfigError where the network cannot take images as small as the features are."""
    mel = front_end.recipe.mel
    if mel is None:
        return
    size = mel.n_mels, mel.num_frames(front_end.recipe.num_samples)
    if not accepts(model, (1, front_end.num_channels, *size)):
        raise ConfigError(
            f"the model cannot take images of {size[0]} mel bands x {size[1]} frames, most likely too small for"
            " it; raise features.n_mels or features.seconds, lower features.hop_length, or take another model"
        )


def build_network(cfg: DictConfig, *, num_classes: int) -> Network:
    """The model behind its front end, untrained."""
    front_end = build_front_end(cfg)
    model = build_model(cfg, front_end, num_classes=num_classes)
    return Network(model, front_end, channels_last=cfg.trainer.channels_last)
