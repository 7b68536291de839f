"""One run from configuration to record: prepare, fit, test; and the test again from a checkpoint alone."""

import logging
import os
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import EarlyStopping
from omegaconf import DictConfig, OmegaConf
from torch.utils.tensorboard import SummaryWriter

from esc50.batches import ClipBatches
from esc50.build.data import build_clips, build_split
from esc50.build.task import build_task, build_watch
from esc50.build.trainer import build_batches, build_trainer
from esc50.config import check_data
from esc50.data.folds import Split, fingerprint, write_split
from esc50.data.manifest import class_names
from esc50.errors import DataError
from esc50.files import write_atomically
from esc50.results.metrics import score
from esc50.results.predictions import Predictions, predictions_of, write_predictions
from esc50.results.record import git_commit, versions, write_metrics
from esc50.training.checkpoints import (
    Description,
    check_same_config,
    checkpoint_callback,
    checkpoint_state,
    copy_checkpoints,
    find_checkpoint,
    find_last_checkpoint,
    is_finished,
    load_checkpoint,
)
from esc50.training.memory import keep_freed_memory
from esc50.training.precision import available, check_device, resolve_precision
from esc50.training.recompute import checkpoint_blocks
from esc50.training.task import Classifier
from esc50.training.threads import share_cores
from esc50.watch.evaluation import Evaluation, EvaluationPanel
from esc50.watch.events import RunEvents
from esc50.watch.hparams import flat_settings, write_hparams

log = logging.getLogger(__name__)

TENSORBOARD = "tensorboard"
SCORES = ("accuracy", "loss", "top5", "macro_f1")


def train(cfg: DictConfig, folder: Path) -> float | None:
    """Prepare the data, train, test the chosen checkpoint and leave the whole record in `folder`.

    Returns the validation accuracy of the tested checkpoint, None where the protocol has no validation.
    """
    started = time.monotonic()
    quieten()
    keep_freed_memory()
    share_cores(num_workers=cfg.loader.num_workers)
    source = find_last_checkpoint(cfg.resume) if cfg.resume else None
    stored = load_checkpoint(source) if source else None
    check_device(accelerator=cfg.trainer.accelerator, devices=cfg.trainer.devices, strategy=cfg.trainer.strategy)
    settle_precision(cfg, stored)
    config = OmegaConf.to_container(cfg, resolve=True)
    if stored:
        check_same_config(config, stored["esc50"]["config"])
        copy_checkpoints(source, folder)
        source = folder / "checkpoints" / source.name
    with write_atomically(folder / "config.yaml") as temporary:
        OmegaConf.save(OmegaConf.create(config), temporary)

    if "weights" in cfg.model:  # an unknown name or weights that cannot be had should not show after the data was fetched
        build_task(cfg, num_classes=2)
    L.seed_everything(cfg.seed, verbose=False)
    clips = build_clips(cfg)
    split, names = build_split(cfg, clips), class_names(clips)
    if len(names) < 2:
        raise DataError(f"{cfg.data.root} has one class only, {names[0]}; there is nothing to tell apart, wanted two or more")
    if stored:
        _check_same_clips(stored, split, names, cfg.data.root)
    write_split(split, folder / "split.csv")
    task = build_task(cfg, num_classes=len(names))
    data = build_batches(cfg, clips, split)
    if not stored:
        task.front_end.fit(data.rows, data.datasets["train"].indices)
    if cfg.model.gradient_checkpointing:
        log.info("gradient checkpointing of %d blocks", checkpoint_blocks(task.model))
    if cfg.trainer.compile:
        task.model.compile()

    checkpoints = checkpoint_callback(folder, monitor=cfg.checkpoint.monitor if split.val else None,
                                      save_top_k=cfg.checkpoint.save_top_k)
    logger = RunEvents(folder, version=TENSORBOARD, purge_step=stored["global_step"] if stored else 0)
    callbacks = [checkpoints, Description(config, names, split), *_stopping(cfg), *build_watch(cfg)]
    trainer = build_trainer(cfg, folder, logger, callbacks)
    fit_started = time.monotonic()
    if stored and is_finished(stored, max_epochs=cfg.trainer.max_epochs):
        log.info("the run is finished after %d epochs and only tested again", stored["epoch"] + 1)
        checkpoints.load_state_dict(checkpoint_state(stored))
    else:
        try:
            trainer.fit(task, datamodule=data, ckpt_path=source, weights_only=True)
        except SystemExit:  # what Lightning makes of Ctrl-C, without a word
            if trainer.interrupted:
                raise KeyboardInterrupt(f"resume={folder} goes on from the last whole epoch") from None
            raise
    fit_seconds = time.monotonic() - fit_started

    best = checkpoints.best_model_path if split.val else ""
    chosen = Path(best) if best else folder / "checkpoints" / "last.ckpt"
    record = {"checkpoint": chosen.resolve().relative_to(folder.resolve()).as_posix(),
              **_facts(cfg, split, names), "seconds": round(time.monotonic() - started, 1),
              "train_seconds": round(fit_seconds, 1)}
    last_step = max(trainer.global_step, stored["global_step"] if stored else 0)
    return _test(load_checkpoint(chosen), data, folder, record, started, step=last_step)


def evaluate(checkpoint: str | Path, folder: Path, *, root: str | None = None) -> float | None:
    """Repeat the test of a checkpoint (or run folder) from it alone and leave the record in `folder`.

    `root` says where the data lies now, if not where it lay in training. Returns as `train`.
    """
    started = time.monotonic()
    quieten()
    path = find_checkpoint(checkpoint)
    stored = load_checkpoint(path)
    cfg = OmegaConf.create(stored["esc50"]["config"])
    if root is not None:
        cfg.data.root = root
    cfg.resume = None
    cfg.data.creates = None  # a test makes no data
    check_data(cfg)
    clips = build_clips(cfg)
    split, names = build_split(cfg, clips), tuple(stored["esc50"]["class_names"])
    _check_same_clips(stored, split, class_names(clips), cfg.data.root)
    write_split(split, folder / "split.csv")
    data = build_batches(cfg, clips, split)
    record = {"checkpoint": os.path.relpath(path, folder), **_facts(cfg, split, names), "seconds": 0.0}
    return _test(stored, data, folder, record, started, step=stored["global_step"])


def _show(writer: SummaryWriter, config: Mapping[str, Any], evaluation: Evaluation) -> None:
    """The test as the panels show it."""
    for panel in build_watch(OmegaConf.create(config)):
        if isinstance(panel, EvaluationPanel):
            panel.write(writer, evaluation)


def _check_same_clips(stored: Mapping[str, Any], split: Split, names: tuple[str, ...], root: str) -> None:
    known = stored["esc50"]
    if names != tuple(known["class_names"]):
        raise DataError(f"the data at {root} has the classes {', '.join(names)}, the checkpoint knows"
                        f" {', '.join(known['class_names'])}; give data.root= of the data it was trained on")
    if known.get("split") not in (None, fingerprint(split)):
        raise DataError(f"the clips at {root}, or their folds, are not those that the checkpoint was trained with, so the"
                        " test could hold clips it has learnt; put them back, or train anew")


def restore_task(stored: Mapping[str, Any]) -> Classifier:
    """The task of a loaded checkpoint, with its weights; nothing is downloaded."""
    cfg = OmegaConf.create(stored["esc50"]["config"])
    if "weights" in cfg.model:
        cfg.model.weights = None
    task = build_task(cfg, num_classes=len(stored["esc50"]["class_names"]))
    task.load_state_dict(stored["state_dict"])
    return task


def predict_role(trainer: L.Trainer, task: Classifier, data: ClipBatches, role: str, names: tuple[str, ...]) -> Predictions:
    """Probabilities of every clip of a role, once, in the order of the split, in float32."""
    trainer.test(task, dataloaders=data.in_order(role), verbose=False)
    _, targets, probs = task.evaluated()
    return predictions_of(data.split.roles()[role], targets, probs, names=names)


def quieten() -> None:
    """Keep what a user can act upon and drop what libraries say about themselves."""
    for name in ("lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in (".*does not have many workers.*", ".*smaller than the logging interval.*", ".*litlogger.*",
                    ".*`isinstance.treespec, LeafSpec.` is deprecated.*",
                    ".*Total length of `list` across ranks is zero.*", ".*Checkpoint directory .* exists and is not empty.*",
                    ".*you defined a `validation_step` but have no `val_dataloader`.*"):
        warnings.filterwarnings("ignore", message)


def settle_precision(cfg: DictConfig, stored: Mapping[str, Any] | None) -> None:
    """Write the precision that training will use into the config; a resumed run keeps the one it began with."""
    if stored and cfg.trainer.precision == "auto":
        cfg.trainer.precision = stored["esc50"]["config"]["trainer"]["precision"]
        return
    precision, reason = resolve_precision(cfg.trainer.precision, model=cfg.model.precision,
                                          accelerator=cfg.trainer.accelerator, compiled=cfg.trainer.compile)
    log.info("training in %s: %s", precision, reason)
    cfg.trainer.precision = precision


def _stopping(cfg: DictConfig) -> list[L.Callback]:
    if cfg.early_stopping.patience is None:
        return []
    monitor = cfg.checkpoint.monitor
    return [EarlyStopping(monitor, mode="min" if monitor.endswith("loss") else "max", patience=cfg.early_stopping.patience)]


def _facts(cfg: DictConfig, split: Split, names: tuple[str, ...]) -> dict[str, Any]:
    return {"protocol": split.protocol, "fold": cfg.fold, "seed": cfg.seed, "clips": len(split.test),
            "train_clips": len(split.train), "val_clips": len(split.val), "classes": len(names),
            "versions": versions(), "git_commit": git_commit()}


def _test(stored: Mapping[str, Any], data: ClipBatches, folder: Path, record: dict[str, Any],
          started: float, *, step: int) -> float | None:
    """Score validation and test clips with the chosen checkpoint, write the record, end with one line."""
    task = restore_task(stored)
    names = tuple(stored["esc50"]["class_names"])
    config = stored["esc50"]["config"]
    trainer = L.Trainer(accelerator=available(config["trainer"]["accelerator"]), devices=1, precision="32-true",
                        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                        default_root_dir=folder)
    found, test = {}, None
    for role in ("val", "test"):
        predictions = predict_role(trainer, task, data, role, names) if data.split.roles()[role] else None
        values = score(predictions) if predictions else dict.fromkeys(SCORES)
        found |= {f"{role}_{name}": values[name] for name in SCORES}
        if predictions and role == "test":
            test = predictions
            write_predictions(predictions, folder / "predictions.csv")
    record |= {"seconds": round(time.monotonic() - started, 1), "epoch": stored["epoch"] + 1}
    write_metrics({**{key: found[key] for key in ("test_accuracy", "val_accuracy")}, **found, **record}, folder)
    final = {f"final/{name}": value for name, value in found.items() if value is not None}
    # What an earlier test wrote from this step on is taken back.
    with SummaryWriter(folder / TENSORBOARD, purge_step=step) as writer:
        write_hparams(writer, flat_settings(config), final, step=step)
        if test is not None:
            _show(writer, config, Evaluation(role="test", step=step, predictions=test, data=data, task=task))
    if data.split.test:
        log.info("test accuracy %.4f on %d clips, fold %d, run folder %s", found["test_accuracy"], len(data.split.test),
                 record["fold"], folder)
    else:
        log.info("trained on all %d clips, nothing tested (split=all), run folder %s", len(data.split.train), folder)
    return found["val_accuracy"]
