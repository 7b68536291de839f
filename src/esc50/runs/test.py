"""The test of a checkpoint: after training, and again from the checkpoint alone."""

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightning as L
from omegaconf import DictConfig, OmegaConf
from torch.utils.tensorboard import SummaryWriter

from esc50.assembly.data import build_clips, build_split
from esc50.assembly.retest import check_calls, restore_task
from esc50.assembly.task import build_watch
from esc50.assembly.trainer import build_batches
from esc50.batches import ClipBatches
from esc50.config.door import check_data
from esc50.data.clip import class_names
from esc50.data.folds import Split, fingerprint, write_split
from esc50.errors import DataError
from esc50.results.metrics import score
from esc50.results.predictions import Predictions, predictions_of, write_predictions
from esc50.results.record import git_commit, versions, write_metrics
from esc50.results.reliability import fit_temperature
from esc50.training.checkpoint_files import find_checkpoint, load_checkpoint
from esc50.training.precision import available
from esc50.training.quiet import quieten
from esc50.training.task import Classifier
from esc50.watch.evaluation import Evaluation, EvaluationPanel
from esc50.watch.events import TENSORBOARD
from esc50.watch.hparams import flat_settings, write_hparams

log = logging.getLogger(__name__)

SCORES = ("accuracy", "loss", "top5", "macro_f1")


def evaluate(checkpoint: str | Path, folder: Path, *, root: str | None = None, num_shifts: int = 1) -> float | None:
    """Repeat the test of a checkpoint (or run folder) from it alone and leave the record in `folder`.

    `root` says where the data lies now, if not where it lay in training; `num_shifts` > 1 averages the probabilities over so
    many circular shifts in time (test-time augmentation). Returns as `train`.
    """
    started = time.monotonic()
    quieten()
    path = find_checkpoint(checkpoint)
    stored = load_checkpoint(path)
    check_calls(stored)
    cfg = OmegaConf.create(stored["esc50"]["config"])
    if root is not None:
        cfg.data.root = root
    cfg.resume = None
    if "creates" in cfg.data:
        cfg.data.creates = None  # a test makes no data
    check_data(cfg)
    clips = build_clips(cfg)
    split, names = build_split(cfg, clips), tuple(stored["esc50"]["class_names"])
    check_same_clips(stored, split, class_names(clips), cfg.data.root)
    write_split(split, folder / "split.csv")
    data = build_batches(cfg, clips, split)
    record = {"checkpoint": os.path.relpath(path, folder), **facts(cfg, split, names), "shifts": num_shifts, "seconds": 0.0}
    return test(stored, data, folder, record, started, step=stored["global_step"], num_shifts=num_shifts)


def check_same_clips(stored: Mapping[str, Any], split: Split, names: tuple[str, ...], root: str) -> None:
    """Raise DataError where the clips or classes of now are not those of a loaded checkpoint."""
    known = stored["esc50"]
    if names != tuple(known["class_names"]):
        raise DataError(
            f"the data at {root} has the classes {', '.join(names)}, the checkpoint knows"
            f" {', '.join(known['class_names'])}; give data.root= of the data it was trained on"
        )
    if known.get("split") not in (None, fingerprint(split)):
        raise DataError(
            f"the clips at {root}, or their folds, are not those that the checkpoint was trained with, so the"
            " test could hold clips it has learnt; put them back, or train anew"
        )


def facts(cfg: DictConfig, split: Split, names: tuple[str, ...]) -> dict[str, Any]:
    """What metrics.json says of a run besides its scores."""
    return {
        "protocol": split.protocol,
        "fold": cfg.fold,
        "seed": cfg.seed,
        "clips": len(split.test),
        "train_clips": len(split.train),
        "val_clips": len(split.val),
        "classes": len(names),
        "versions": versions(),
        "git_commit": git_commit(),
    }


def predict_role(trainer: L.Trainer, task: Classifier, data: ClipBatches, role: str, names: tuple[str, ...]) -> Predictions:
    """Probabilities of every clip of a role, once, in the order of the split, in float32."""
    trainer.test(task, dataloaders=data.in_order(role), verbose=False)
    _, targets, probs = task.evaluated()
    return predictions_of(data.split.roles()[role], targets, probs, names=names)


def test(
    stored: Mapping[str, Any],
    data: ClipBatches,
    folder: Path,
    record: dict[str, Any],
    started: float,
    *,
    step: int,
    num_shifts: int = 1,
) -> float | None:
    """Score validation and test clips with the chosen checkpoint, write the record, end with one line."""
    task = restore_task(stored)
    task.num_shifts = num_shifts
    names = tuple(stored["esc50"]["class_names"])
    config = stored["esc50"]["config"]
    trainer = L.Trainer(
        accelerator=available(config["trainer"]["accelerator"]),
        devices=1,
        precision="32-true",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )
    found: dict[str, float | None] = {}
    tested, temperature = None, None
    for role in ("val", "test"):
        predictions = predict_role(trainer, task, data, role, names) if data.split.roles()[role] else None
        values = score(predictions) if predictions else dict.fromkeys(SCORES)
        found |= {f"{role}_{name}": values[name] for name in SCORES}
        if predictions and role == "val":
            temperature = fit_temperature(predictions.probs, predictions.targets)
        if predictions and role == "test":
            tested = predictions
            write_predictions(predictions, folder / "predictions.csv")
    record |= {
        "parameters": sum(parameter.numel() for parameter in task.model.parameters()),
        "temperature": temperature,
        "seconds": round(time.monotonic() - started, 1),
        "epoch": stored["epoch"] + 1,
    }
    write_metrics({**{key: found[key] for key in ("test_accuracy", "val_accuracy")}, **found, **record}, folder)
    final = {f"final/{name}": value for name, value in found.items() if value is not None}
    # What an earlier test wrote from this step on is taken back.
    with SummaryWriter(folder / TENSORBOARD, purge_step=step) as writer:
        write_hparams(writer, flat_settings(config), final, step=step)
        if tested is not None:
            _show(writer, config, Evaluation(role="test", step=step, predictions=tested, data=data, task=task))
    if data.split.test:
        log.info(
            "test accuracy %.4f on %d clips, fold %d, run folder %s",
            found["test_accuracy"],
            len(data.split.test),
            record["fold"],
            folder,
        )
    else:
        other = record.get("scored_by")
        recipe = f"; its recipe scores {other['accuracy_mean']:.4f} over {other['folds']} folds" if other else ""
        log.info("trained on all %d clips, nothing tested (split=all)%s, run folder %s", len(data.split.train), recipe, folder)
    return found["val_accuracy"]


def _show(writer: SummaryWriter, config: Mapping[str, Any], evaluation: Evaluation) -> None:
    """The test as the panels show it."""
    for panel in build_watch(OmegaConf.create(dict(config))):
        if isinstance(panel, EvaluationPanel):
            panel.write(writer, evaluation)
