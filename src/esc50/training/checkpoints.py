"""Checkpoints: written whole or not at all, plain data only, found by run folder, compared before a resume."""

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.fabric.plugins import TorchCheckpointIO
from lightning.pytorch.callbacks import ModelCheckpoint

from esc50.data.folds import Split, fingerprint
from esc50.errors import ConfigError, DataError
from esc50.files import write_atomically
from esc50.results.record import read_metrics, versions
from esc50.results.runs import WITHOUT_EFFECT, differing_keys, flat

log = logging.getLogger(__name__)

FOLDER = "checkpoints"
LAST = "last.ckpt"
# What may differ between a run and the one it goes on from.
FREE_KEYS = ("trainer.max_epochs", *WITHOUT_EFFECT)


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes beside the target, then takes its place, so that a killed run leaves the checkpoint before whole."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        with write_atomically(path) as temporary:
            torch.save(checkpoint, temporary)


class Description(L.Callback):
    """Puts into each checkpoint what it takes to use it without this configuration: plain data only."""

    def __init__(self, config: dict[str, Any], names: tuple[str, ...], split: Split):
        self._content = {"config": config, "class_names": list(names), "split": fingerprint(split), "versions": versions()}

    def on_save_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint["esc50"] = self._content


class BestAndLast(ModelCheckpoint):
    """ModelCheckpoint that keeps the last epoch, too, whether or not it is among the best (Lightning since 2.6 does so only
    if it is), and whose memory of the best files goes with the folder: a run that was moved, or is resumed into another
    folder with its checkpoints copied there, still knows its best."""

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        super().on_train_epoch_end(trainer, pl_module)
        # Here, not after validation: only now has early stopping counted the epoch.
        trainer.save_checkpoint(Path(self.dirpath) / LAST)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        def here(path: str) -> str:
            return str(Path(self.dirpath) / Path(path).name) if path else path

        moved = dict(state_dict) | {"dirpath": self.dirpath}
        for key in ("best_model_path", "kth_best_model_path", "last_model_path"):
            moved[key] = here(moved.get(key, ""))
        moved["best_k_models"] = {here(path): value for path, value in moved.get("best_k_models", {}).items()}
        if moved["best_model_path"] and not Path(moved["best_model_path"]).is_file():
            log.warning(
                "the best epoch so far, %s, does not lie beside the checkpoint; the best is chosen from the epochs"
                " to come, or the last one is taken",
                Path(moved["best_model_path"]).name,
            )
            moved |= {
                "best_model_path": "",
                "best_model_score": None,
                "best_k_models": {},
                "kth_best_model_path": "",
                "kth_value": None,
            }
        super().load_state_dict(moved)


def checkpoint_callback(folder: Path, *, monitor: str | None, save_top_k: int) -> BestAndLast:
    """Keeps `last.ckpt` and, with a `monitor`, the best epochs; file names are flat and free of `=`."""
    mode = "min" if monitor is not None and monitor.endswith("loss") else "max"
    return BestAndLast(
        dirpath=str(folder / FOLDER),
        filename="epoch-{epoch:03d}",
        monitor=monitor,
        mode=mode,
        save_top_k=0 if monitor is None else save_top_k,
        save_on_train_epoch_end=True,
        auto_insert_metric_name=False,
        enable_version_counter=False,
    )


def find_checkpoint(path: str | Path) -> Path:
    """The checkpoint that `path` means: a file itself; of a run folder the tested one, as its metrics.json says, else the
    last. Raises DataError."""
    path = Path(path)
    if path.is_file():
        return path
    if not path.is_dir():
        raise DataError(f"no checkpoint or run folder at {path}")
    named = read_metrics(path).get("checkpoint") if (path / "metrics.json").is_file() else None
    return _existing(path / named if named else path / FOLDER / LAST, path)


def find_last_checkpoint(path: str | Path) -> Path:
    """The checkpoint to go on from: a file itself, of a run folder the last one. Raises DataError."""
    path = Path(path)
    return path if path.is_file() else _existing(path / FOLDER / LAST, path)


def _existing(checkpoint: Path, folder: Path) -> Path:
    if not checkpoint.is_file():
        name = checkpoint.relative_to(folder) if checkpoint.is_relative_to(folder) else checkpoint
        raise DataError(f"{folder} holds no {name}; it is not the folder of a run that finished an epoch")
    return checkpoint


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint on the CPU, plain tensors and builtin types only. Raises DataError for anything else."""
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for files that are not its own
        raise DataError(f"{path} is not a readable checkpoint ({_first_line(error)})") from None
    if not isinstance(checkpoint, dict) or not isinstance(checkpoint.get("esc50"), dict):
        raise DataError(f"{path} is not a checkpoint of this program: it lacks the description of data and front end")
    return checkpoint


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:120]


def describe(path: Path, **facts: Any) -> None:
    """Add plain-data `facts` to what the checkpoint `path` says of itself, unless it says so already."""
    stored = load_checkpoint(path)
    if stored["esc50"] | facts == stored["esc50"]:
        return
    stored["esc50"] |= facts
    with write_atomically(path) as temporary:
        torch.save(stored, temporary)


def checkpoint_state(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What `BestAndLast` remembered when this checkpoint was written."""
    return next(state for name, state in stored["callbacks"].items() if name.startswith(BestAndLast.__name__))


def is_finished(stored: Mapping[str, Any], *, max_epochs: int) -> bool:
    """Whether a run that left this checkpoint last has nothing more to train: all epochs done, or stopped early."""
    stopped = any(state.get("stopped_epoch", 0) > 0 for state in stored["callbacks"].values())
    return stopped or stored["epoch"] + 1 >= max_epochs


def copy_checkpoints(source: Path, folder: Path) -> None:
    """Bring the checkpoints that lie beside `source` into the run folder `folder`, unless they are there already."""
    target = folder / FOLDER
    if source.parent.resolve() == target.resolve():
        return
    for path in source.parent.glob("[!.]*.ckpt"):  # a hidden one is what a killed run had not finished
        with write_atomically(target / path.name) as temporary:
            shutil.copyfile(path, temporary)


def check_same_config(config: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """Raise ConfigError listing the keys in which a resumed run's config differs from its checkpoint's."""
    different = differing_keys(config, stored, free=FREE_KEYS)
    if different:
        now, then = flat(config), flat(stored)
        pairs = ", ".join(f"{key}={now.get(key, 'absent')} (was {then.get(key, 'absent')})" for key in different)
        raise ConfigError(
            f"resume: this config differs from the checkpoint's in {pairs}; only trainer.max_epochs, paths and"
            " watch may change, start a new run for anything else"
        )
