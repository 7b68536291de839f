"""From a checkpoint alone to the network it holds: no data set and no configuration files at hand. Free of Lightning."""

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from hydra.errors import InstantiationException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from torch import nn

from esc50.assembly.network import build_network
from esc50.config.plain import plain
from esc50.config.relations import nodes
from esc50.errors import DataError
from esc50.inference.predictor import Predictor
from esc50.models.network import Network
from esc50.training.checkpoint_files import find_checkpoint, load_checkpoint
from esc50.training.precision import device_for

# Of no use to a trained model, and so not made from what a file says.
UNUSED = {"augment": {}, "schedule": {"_target_": "esc50.training.schedules.constant"}}
Restored = TypeVar("Restored", bound=nn.Module)
TRAINING_ONLY = "augment."  # how their weights begin


def load(checkpoint: str | Path, *, accelerator: str = "auto") -> Predictor:
    """The model of a checkpoint file, or of a run folder the tested one.

    `accelerator`: auto, cpu, cuda or mps. The file alone is needed: neither data nor configuration files. Raises DataError
    where it cannot be read, or was written by another version.
    """
    stored = load_checkpoint(find_checkpoint(checkpoint))
    return Predictor(restore_network(stored).to(device_for(accelerator)), stored["esc50"])


def restore_network(stored: Mapping[str, Any]) -> Network:
    """The network of a loaded checkpoint, with its weights, to predict with. Raises as `restored`."""
    return restored(stored, build_network)


def restored(stored: Mapping[str, Any], build: Callable[..., Restored]) -> Restored:
    """What `build` makes of a loaded checkpoint's configuration, with its weights and without augmentation and schedule.
    Nothing is downloaded, and nothing made but a network. Raises DataError where the checkpoint is another version's, or names
    something that is no network, or lies in a module that is not here."""
    with readable(stored):
        known = stored["esc50"]
        cfg = OmegaConf.create(known["config"] | UNUSED)
        check_named(plain(cfg.model, resolve=True), "its network", nn.Module)
        if "weights" in cfg.model:
            cfg.model.weights = None
        made = build(cfg, num_classes=len(known["class_names"]))
        made.load_state_dict({name: value for name, value in stored["state_dict"].items() if not name.startswith(TRAINING_ONLY)})
    return made


@contextlib.contextmanager
def readable(stored: Mapping[str, Any]) -> Iterator[None]:
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


def check_named(section: Mapping[str, Any], what: str, wanted: type | Callable[[Any], bool]) -> None:
    """Raise DataError unless a resolved section of a configuration names a `wanted` class, or a function that `wanted` says yes
    to, and nothing else."""
    targets = [str(value) for key, value in nodes(section) if key.rpartition(".")[2] == "_target_"]
    own = str(section["_target_"])
    if targets != [own] or not _is_one(_named(own, what), wanted):
        raise DataError(f"the checkpoint names {', '.join(targets)} as {what}, which is none; take one from a source you trust")


def _is_one(named: Any, wanted: type | Callable[[Any], bool]) -> bool:
    if isinstance(wanted, type):
        return isinstance(named, type) and issubclass(named, wanted)
    return wanted(named)


def _named(target: str, what: str) -> Any:
    """What a dotted name stands for, None where its module has none such. Raises DataError where a module that is not of this
    package cannot be found."""
    module, _, name = target.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        missing = str(error.name)
        if missing.partition(".")[0] == __package__.partition(".")[0]:
            raise
        if f"{module}.".startswith(f"{missing}."):
            advice = f"run the command in the folder where {missing} lies, or put that folder on PYTHONPATH"
        else:
            advice = f"{module} imports it; install it"
        raise DataError(f"the checkpoint names {target} as {what}, and there is no module {missing} here; {advice}") from None
