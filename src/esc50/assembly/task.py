"""From a configuration to the model that learns, its optimiser and what watches it."""

from collections.abc import Callable

from omegaconf import DictConfig, OmegaConf
from torch import nn
from torch.optim import Optimizer

from esc50.assembly.data import build_recipe, component, instantiate
from esc50.errors import ConfigError
from esc50.features.front_end import FrontEnd
from esc50.models.probe import accepts
from esc50.training.optimizers import parameter_groups
from esc50.training.task import Classifier


def build_model(cfg: DictConfig, front_end: FrontEnd, *, num_classes: int) -> nn.Module:
    """The network. Raises ConfigError where it cannot take images as small as the features are."""
    model = component(cfg, "model", num_classes=num_classes, in_channels=front_end.num_channels)
    mel = front_end.recipe.mel
    if mel is not None:
        size = mel.n_mels, mel.num_frames(front_end.recipe.num_samples)
        if not accepts(model, (1, front_end.num_channels, *size)):
            raise ConfigError(
                f"the model cannot take images of {size[0]} mel bands x {size[1]} frames, most likely too small for"
                " it; raise features.n_mels or features.seconds, lower features.hop_length, or take another model"
            )
    return model


def build_optimizer(cfg: DictConfig) -> Callable[[nn.Module], Optimizer]:
    """Makes an optimiser for a model, with its parameter groups."""
    ratio = OmegaConf.to_container(cfg.optimizer.lr_ratio)

    def optimizer(model: nn.Module) -> Optimizer:
        groups = parameter_groups(model, lr=cfg.optimizer.lr, lr_ratio=ratio)
        return component(cfg, "optimizer", _partial_=True)(groups)

    return optimizer


def build_task(cfg: DictConfig, *, num_classes: int) -> Classifier:
    """The model with front end, augmentation, optimiser and schedule, untrained."""
    front_end = FrontEnd(build_recipe(cfg), normalization=cfg.features.normalize)
    augment = {
        slot: {name: instantiate(part) for name, part in (parts or {}).items() if part is not None}
        for slot, parts in cfg.augment.items()
    }
    return Classifier(
        build_model(cfg, front_end, num_classes=num_classes),
        front_end,
        num_classes=num_classes,
        seed=cfg.seed,
        augment=augment,
        optimizer=build_optimizer(cfg),
        schedule=component(cfg, "schedule", _partial_=True),
        freeze_epochs=cfg.trainer.freeze_epochs,
        label_smoothing=cfg.trainer.label_smoothing,
        channels_last=cfg.trainer.channels_last,
        cache_frozen=cfg.trainer.cache_frozen,
    )


def build_watch(cfg: DictConfig) -> list:
    """The callbacks of the chosen panels."""
    return [instantiate(panel) for panel in (cfg.watch or {}).values() if panel is not None]
