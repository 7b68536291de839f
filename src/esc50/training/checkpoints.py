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
from esc50.errors import ConfigError
from esc50.files import write_atomically
from esc50.results.record import versions
from esc50.results.runs import WITHOUT_EFFECT, differing_keys, flat
from esc50.training.checkpoint_files import FOLDER, LAST

log = logging.getLogger(__name__)

# What may differ between a run and the one it goes on from.
FREE_KEYS = ("trainer.max_epochs", *WITHOUT_EFFECT)


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes beside the target, then takes its place, so that a killed run leaves the checkpoint before whole."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        with write_atomically(path) as temporary:
            torch.save(checkpoint, temporary)


class Description(L.Callback):
    """Puts into each checkpoint what it takes to use it without this configuration: plain data only."""

    def __init__(self, config: Mapping[str, Any], names: tuple[str, ...], split: Split):
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
        trainer.save_checkpoint(self._folder / LAST)

    @property
    def _folder(self) -> Path:
        assert self.dirpath is not None
        return Path(self.dirpath)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        def here(path: str) -> str:
            return str(self._folder / Path(path).name) if path else path

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
