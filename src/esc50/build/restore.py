"""From a checkpoint alone to the task it holds: no data set and no configuration files at hand."""

from collections.abc import Mapping
from typing import Any

import hydra
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from torch import nn

from esc50.build.task import build_task
from esc50.errors import DataError
from esc50.training.task import Classifier


def restore_task(stored: Mapping[str, Any]) -> Classifier:
    """The task of a loaded checkpoint, with its weights; nothing is downloaded. Raises DataError where the checkpoint is
    another version's, or names something that is no network."""
    cfg = OmegaConf.create(stored["esc50"]["config"])
    try:
        target = cfg.model["_target_"]
        if not issubclass(hydra.utils.get_class(target), nn.Module):
            raise DataError(f"the checkpoint names {target} as its network, which is none; take one from a source you trust")
        if "weights" in cfg.model:
            cfg.model.weights = None
        task = build_task(cfg, num_classes=len(stored["esc50"]["class_names"]))
        task.load_state_dict(stored["state_dict"])
    except (OmegaConfBaseException, ImportError, TypeError, RuntimeError, ValueError) as error:
        version = stored["esc50"].get("versions", {}).get("esc50", "unknown")
        raise DataError(f"the checkpoint, of version {version}, cannot be restored by this one"
                        f" ({str(error).strip().splitlines()[0]}); train again, or use the version that wrote it") from error
    return task
