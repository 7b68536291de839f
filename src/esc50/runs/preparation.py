"""What a run needs before it trains: its process, what an earlier run left, its precision, its data and its task."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning as L
from omegaconf import DictConfig, OmegaConf

from esc50.assembly.data import build_clips, build_split
from esc50.assembly.task import build_task
from esc50.assembly.trainer import build_batches
from esc50.batches import ClipBatches
from esc50.data.checklist import check_clips
from esc50.data.clip import class_names
from esc50.data.folds import Split, write_split
from esc50.errors import DataError
from esc50.files import write_atomically
from esc50.results.standing import cross_validated
from esc50.runs.test import check_same_clips
from esc50.training.checkpoint_files import find_last_checkpoint, load_checkpoint
from esc50.training.checkpoints import check_same_config, copy_checkpoints
from esc50.training.memory import keep_freed_memory
from esc50.training.precision import check_device, resolve_precision
from esc50.training.quiet import quieten
from esc50.training.recompute import checkpoint_blocks
from esc50.training.task import Classifier
from esc50.training.threads import share_cores

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """What a run goes on from: a checkpoint beside those of this run, and its content."""

    checkpoint: Path
    stored: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What is trained: clips by role, class names in the order of the targets, batches, and the task that learns."""

    split: Split
    names: tuple[str, ...]
    data: ClipBatches
    task: Classifier


def prepare_process(cfg: DictConfig) -> None:
    """Warnings, memory, cores and random numbers of this process. Raises ConfigError for devices that it does not have."""
    quieten()
    keep_freed_memory()
    share_cores(num_workers=cfg.loader.num_workers, num_processes=cfg.trainer.devices)
    check_device(accelerator=cfg.trainer.accelerator, devices=cfg.trainer.devices, strategy=cfg.trainer.strategy)


def find_earlier(cfg: DictConfig) -> Earlier | None:
    """The checkpoint that `resume` names. Raises DataError where there is none."""
    if not cfg.resume:
        return None
    checkpoint = find_last_checkpoint(cfg.resume)
    return Earlier(checkpoint=checkpoint, stored=load_checkpoint(checkpoint))


def settle_precision(cfg: DictConfig, stored: Mapping[str, Any] | None) -> None:
    """Write the precision that training will use into the config; a resumed run keeps the one it began with."""
    if stored and cfg.trainer.precision == "auto":
        cfg.trainer.precision = stored["esc50"]["config"]["trainer"]["precision"]
        return
    precision, reason = precision_of(cfg)
    log.info("training in %s: %s", precision, reason)
    cfg.trainer.precision = precision


def precision_of(cfg: DictConfig) -> tuple[str, str]:
    """The precision that a new run trains in, and why."""
    return resolve_precision(
        cfg.trainer.precision, model=cfg.model.precision, accelerator=cfg.trainer.accelerator, compiled=cfg.trainer.compile
    )


def take_over(earlier: Earlier | None, config: Mapping[str, Any], folder: Path) -> Earlier | None:
    """The same, with its checkpoints brought into this run's folder. Raises ConfigError where its config was another."""
    if earlier is None:
        return None
    check_same_config(config, earlier.stored["esc50"]["config"])
    copy_checkpoints(earlier.checkpoint, folder)
    return Earlier(checkpoint=folder / "checkpoints" / earlier.checkpoint.name, stored=earlier.stored)


def write_config(config: Mapping[str, Any], folder: Path) -> None:
    """Leave config.yaml, resolved, in `folder`."""
    with write_atomically(folder / "config.yaml") as temporary:
        OmegaConf.save(OmegaConf.create(dict(config)), temporary)


def check_weights(cfg: DictConfig) -> None:
    """Raise ConfigError or DataError for pre-trained weights that are unknown or cannot be had: it should not show after the
    data was fetched."""
    if "weights" in cfg.model:
        build_task(cfg, num_classes=2)


def standing_score(cfg: DictConfig, config: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]] | None:
    """The score of the sweep that `scored_by` names, and its classes. Raises DataError where it does not fit."""
    return cross_validated(cfg.scored_by, config) if cfg.scored_by else None


def prepare(
    cfg: DictConfig, folder: Path, *, earlier: Earlier | None, standing: tuple[Mapping[str, Any], tuple[str, ...]] | None
) -> Prepared:
    """Clips, folds, features and task of a run; leaves split.csv in `folder`. Raises DataError for data that cannot be used."""
    L.seed_everything(cfg.seed, verbose=False)
    clips = build_clips(cfg)
    split, names = build_split(cfg, clips), class_names(clips)
    _check_classes(cfg, names, standing)
    if earlier is not None:
        check_same_clips(earlier.stored, split, names, cfg.data.root)
    if cfg.trainer.check_data:
        check_clips(clips, split=split)
    write_split(split, folder / "split.csv")
    task = build_task(cfg, num_classes=len(names))
    data = build_batches(cfg, clips, split)
    if earlier is None:
        task.front_end.fit(data.rows, data.datasets["train"].indices)
    if cfg.model.gradient_checkpointing:
        log.info("gradient checkpointing of %d blocks", checkpoint_blocks(task.model))
    if cfg.trainer.compile:
        task.model.compile()
    return Prepared(split=split, names=names, data=data, task=task)


def _check_classes(cfg: DictConfig, names: tuple[str, ...], standing: tuple[Any, tuple[str, ...]] | None) -> None:
    if len(names) < 2:
        raise DataError(f"{cfg.data.root} has one class only, {names[0]}; there is nothing to tell apart, wanted two or more")
    if standing is not None and names != standing[1]:
        raise DataError(
            f"scored_by={cfg.scored_by}: its runs have the classes {', '.join(standing[1])}, the data at"
            f" {cfg.data.root} has {', '.join(names)}; give the sweep on the same data"
        )
