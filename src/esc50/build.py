"""From a configuration to objects: the only caller of Hydra's instantiate."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import hydra
from hydra.errors import InstantiationException
from omegaconf import DictConfig, OmegaConf
from torch import nn
from torch.optim import Optimizer

from esc50.config import FACTS
from esc50.data.folds import Split, make_split
from esc50.data.manifest import Clip
from esc50.errors import ConfigError, Esc50Error
from esc50.features.front_end import FrontEnd
from esc50.features.logmel import LogMelSpec
from esc50.features.recipe import Recipe
from esc50.features.rows import ComputedRows, PackedRows, Rows
from esc50.features.store import build_store
from esc50.models.probe import accepts
from esc50.training.optimizers import parameter_groups
from esc50.training.task import Classifier

GB = 1e9


def component(cfg: DictConfig, group: str, **arguments: Any) -> Any:
    """Instantiate the option chosen in `group`, less what its YAML only states as fact. A person's mistake that its
    constructor finds is raised as it is, not wrapped."""
    plain = {key: value for key, value in cfg[group].items() if key not in FACTS.get(group, ())}
    return _instantiate(plain, **arguments)


def _instantiate(config: Mapping[str, Any], **arguments: Any) -> Any:
    try:
        return hydra.utils.instantiate(config, _convert_="all", **arguments)
    except InstantiationException as error:
        if isinstance(error.__cause__, Esc50Error):
            raise error.__cause__ from None
        raise


def build_clips(cfg: DictConfig) -> tuple[Clip, ...]:
    """All clips of the chosen data set, fetched or generated first where that is its way."""
    return component(cfg, "data")


def build_split(cfg: DictConfig, clips: Sequence[Clip]) -> Split:
    return make_split(clips, protocol=cfg.split.protocol, fold=cfg.fold)


def build_recipe(cfg: DictConfig) -> Recipe:
    """How recordings become features."""
    features = cfg.features
    mel = None
    if "n_mels" in features:
        mel = LogMelSpec(**{field.name: features[field.name] for field in fields(LogMelSpec)})
    return Recipe(kind=features.kind, sample_rate=features.sample_rate, seconds=features.seconds, pad=features.pad, mel=mel)


def build_rows(cfg: DictConfig, clips: Sequence[Clip], recipe: Recipe) -> Rows:
    """Access to the stored values of `clips`; brings the store up to date where there is one."""
    if cfg.features.read != "store":
        return ComputedRows(clips, recipe, cache_size=cfg.features.cache_size if cfg.features.read == "lru" else 0)
    packed, rows = build_store(clips, root=cfg.paths.store, recipe=recipe, colormap=cfg.features.get("colormap"))
    return PackedRows(packed, rows, memory_limit=cfg.loader.memory_limit_gb * GB)


def build_model(cfg: DictConfig, front_end: FrontEnd, *, num_classes: int) -> nn.Module:
    """The network. Raises ConfigError where it cannot take images as small as the features are."""
    model = component(cfg, "model", num_classes=num_classes, in_channels=front_end.num_channels)
    mel = front_end.recipe.mel
    if mel is not None:
        size = mel.n_mels, mel.num_frames(front_end.recipe.num_samples)
        if not accepts(model, (1, front_end.num_channels, *size)):
            raise ConfigError(f"the model cannot take images of {size[0]} mel bands x {size[1]} frames, most likely too small for"
                              " it; raise features.n_mels or features.seconds, lower features.hop_length, or take another model")
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
    augment = {slot: {name: _instantiate(part) for name, part in (parts or {}).items() if part is not None}
               for slot, parts in cfg.augment.items()}
    return Classifier(build_model(cfg, front_end, num_classes=num_classes), front_end, num_classes=num_classes,
                      seed=cfg.seed, augment=augment, optimizer=build_optimizer(cfg),
                      schedule=component(cfg, "schedule", _partial_=True), freeze_epochs=cfg.trainer.freeze_epochs,
                      label_smoothing=cfg.trainer.label_smoothing, channels_last=cfg.trainer.channels_last,
                      cache_frozen=cfg.trainer.cache_frozen)


def build_watch(cfg: DictConfig) -> list:
    """The callbacks of the chosen panels."""
    return [_instantiate(panel) for panel in (cfg.watch or {}).values() if panel is not None]
