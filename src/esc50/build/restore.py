"""From a checkpoint alone to the task it holds: no data set and no configuration files at hand."""

import importlib
from collections.abc import Mapping
from typing import Any

from hydra.errors import InstantiationException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from torch import nn

from esc50.build.task import build_task
from esc50.config import nodes
from esc50.errors import DataError
from esc50.training.task import Classifier

# Of no use to a trained model, and so not made from what a file says.
UNUSED = {"augment": {}, "schedule": {"_target_": "esc50.training.schedules.constant"}}
TRAINING_ONLY = "augment."  # how their weights begin


def restore_task(stored: Mapping[str, Any]) -> Classifier:
    """The task of a loaded checkpoint, with its weights, to evaluate with: it has no augmentation and no schedule. Nothing is
    downloaded, and nothing made but a network. Raises DataError where the checkpoint is another version's, or names something
    that is no network."""
    try:
        known = stored["esc50"]
        cfg = OmegaConf.create(known["config"] | UNUSED)
        _check_network(cfg)
        if "weights" in cfg.model:
            cfg.model.weights = None
        task = build_task(cfg, num_classes=len(known["class_names"]))
        task.load_state_dict({name: value for name, value in stored["state_dict"].items()
                              if not name.startswith(TRAINING_ONLY)})
    except (OmegaConfBaseException, InstantiationException, ImportError, KeyError, TypeError, RuntimeError,
            ValueError) as error:
        version = stored["esc50"].get("versions", {}).get("esc50", "unknown")
        raise DataError(f"the checkpoint, of version {version}, cannot be restored by this one"
                        f" ({str(error).strip().splitlines()[0]}); train again, or use the version that wrote it") from error
    return task


def _check_network(cfg: DictConfig) -> None:
    """Raise DataError unless the model's configuration names a network and nothing else to call: the file may be anybody's."""
    targets = [str(value) for key, value in nodes(OmegaConf.to_container(cfg.model, resolve=True))
               if key.rpartition(".")[2] == "_target_"]
    own = str(cfg.model["_target_"])
    module, _, name = own.rpartition(".")
    named = getattr(importlib.import_module(module), name, None) if targets == [own] else None
    if not (isinstance(named, type) and issubclass(named, nn.Module)):
        raise DataError(f"the checkpoint names {', '.join(targets)} as its network, which is none; take one from a source you"
                        " trust")
