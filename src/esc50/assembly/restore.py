"""From a checkpoint alone to the task it holds: no data set and no configuration files at hand."""

import contextlib
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import lightning as L
from hydra.errors import InstantiationException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from torch import nn

from esc50.assembly.task import build_task
from esc50.config.relations import nodes
from esc50.data.clip import Clip
from esc50.errors import DataError
from esc50.inference.predictor import Predictor
from esc50.training.checkpoints import find_checkpoint, load_checkpoint
from esc50.training.precision import device_for
from esc50.training.quiet import quieten
from esc50.training.task import Classifier

# Of no use to a trained model, and so not made from what a file says.
UNUSED = {"augment": {}, "schedule": {"_target_": "esc50.training.schedules.constant"}}
TRAINING_ONLY = "augment."  # how their weights begin


def load(checkpoint: str | Path, *, accelerator: str = "auto") -> Predictor:
    """The model of a checkpoint file, or of a run folder the tested one.

    `accelerator`: auto, cpu, cuda or mps. The file alone is needed: neither data nor configuration files. Raises DataError
    where it cannot be read, or was written by another version.
    """
    quieten()
    stored = load_checkpoint(find_checkpoint(checkpoint))
    return Predictor(restore_task(stored).to(device_for(accelerator)), stored["esc50"])


def restore_task(stored: Mapping[str, Any]) -> Classifier:
    """The task of a loaded checkpoint, with its weights, to evaluate with: it has no augmentation and no schedule. Nothing is
    downloaded, and nothing made but a network. Raises DataError where the checkpoint is another version's, or names something
    that is no network."""
    with _readable(stored):
        known = stored["esc50"]
        cfg = OmegaConf.create(known["config"] | UNUSED)
        _check_named(OmegaConf.to_container(cfg.model, resolve=True), "its network", lambda named: _is_a(named, nn.Module))
        if "weights" in cfg.model:
            cfg.model.weights = None
        task = build_task(cfg, num_classes=len(known["class_names"]))
        task.load_state_dict({name: value for name, value in stored["state_dict"].items() if not name.startswith(TRAINING_ONLY)})
    return task


def check_calls(stored: Mapping[str, Any]) -> None:
    """Raise DataError where a loaded checkpoint names as its data anything but a reader of clips, or as a panel anything but a
    callback: the file may be anybody's, and what it names there is called to repeat the test."""
    with _readable(stored):
        config = OmegaConf.to_container(OmegaConf.create(stored["esc50"]["config"]), resolve=True)
        _check_named(config["data"], "its data", _reads_clips)
        for panel in filter(None, (config["watch"] or {}).values()):
            _check_named(panel, "a panel", lambda named: _is_a(named, L.Callback))


@contextlib.contextmanager
def _readable(stored: Mapping[str, Any]) -> Iterator[None]:
    """In here, what goes wrong with a configuration of another version is a DataError."""
    try:
        yield
    except (
        OmegaConfBaseException,
        InstantiationException,
        ImportError,
        AssertionError,
        AttributeError,
        KeyError,
        TypeError,
        RuntimeError,
        ValueError,
    ) as error:
        version = stored["esc50"].get("versions", {}).get("esc50", "unknown")
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(
            f"the checkpoint, of version {version}, cannot be restored by this one ({reason}); train again, or use"
            " the version that wrote it"
        ) from error


def _check_named(section: Mapping[str, Any], what: str, is_one: Callable[[Any], bool]) -> None:
    """Raise DataError unless a resolved section of a configuration names to be called what `is_one`, and nothing else."""
    targets = [str(value) for key, value in nodes(section) if key.rpartition(".")[2] == "_target_"]
    own = str(section["_target_"])
    module, _, name = own.rpartition(".")
    if targets != [own] or not is_one(getattr(importlib.import_module(module), name, None)):
        raise DataError(f"the checkpoint names {', '.join(targets)} as {what}, which is none; take one from a source you trust")


def _is_a(named: Any, kind: type) -> bool:
    return isinstance(named, type) and issubclass(named, kind)


def _reads_clips(named: Any) -> bool:
    return inspect.isfunction(named) and inspect.signature(named).return_annotation == tuple[Clip, ...]
