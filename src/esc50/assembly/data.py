"""From a configuration to clips, folds and stored features: the only caller of Hydra's instantiate. Free of torch, so that
what only prepares data starts fast and stays small."""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import hydra
from hydra.errors import InstantiationException
from omegaconf import DictConfig

from esc50.config.schema import COMPONENTS
from esc50.data.clip import Clip
from esc50.data.folds import Split, make_split, with_fewer
from esc50.errors import ConfigError, Esc50Error
from esc50.features.logmel import LogMelSpec
from esc50.features.recipe import Recipe
from esc50.features.rows import ComputedRows, PackedRows, Rows
from esc50.features.store import build_store

GB = 1e9
CLIPS = re.compile(r"tuple\[(\w+\.)*Clip, ?\.\.\.\]")  # an annotation that is kept as text


def component(cfg: DictConfig, group: str, **arguments: Any) -> Any:
    """Instantiate the option chosen in `group`, less what its YAML only states as fact. A person's mistake that its
    constructor finds is raised as it is, not wrapped."""
    facts = {name for name, field in COMPONENTS[group].model_fields.items() if field.exclude}
    plain = {key: value for key, value in cfg[group].items() if key not in facts}
    return instantiate(plain, **arguments)


def instantiate(config: Mapping[str, Any], **arguments: Any) -> Any:
    try:
        return hydra.utils.instantiate(config, _convert_="all", **arguments)
    except InstantiationException as error:
        if isinstance(error.__cause__, Esc50Error):
            raise error.__cause__ from None
        raise


def build_clips(cfg: DictConfig) -> tuple[Clip, ...]:
    """All clips of the chosen data set, fetched or generated first where that is its way. Raises ConfigError for what is no
    reader of clips."""
    if not reads_clips(hydra.utils.get_object(cfg.data._target_)):
        raise ConfigError(f"data._target_={cfg.data._target_}: wanted a function with the annotation `-> tuple[Clip, ...]`")
    return component(cfg, "data")


def reads_clips(named: Any) -> bool:
    """Whether it is a function that says that it returns a tuple of clips."""
    if not inspect.isfunction(named):
        return False
    returned = inspect.signature(named).return_annotation
    return CLIPS.fullmatch(returned) is not None if isinstance(returned, str) else returned == tuple[Clip, ...]


def build_split(cfg: DictConfig, clips: Sequence[Clip]) -> Split:
    """Who trains, validates and tests; fewer train where only a few batches are to be learnt by heart."""
    split = make_split(clips, protocol=cfg.split.protocol, fold=cfg.fold)
    few = cfg.trainer.overfit_batches
    return split if few is None else with_fewer(split, few * cfg.loader.batch_size)


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
