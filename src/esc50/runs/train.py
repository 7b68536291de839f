"""One run from configuration to record: prepare, fit, test."""

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import EarlyStopping
from omegaconf import DictConfig, OmegaConf

from esc50.assembly.data import build_clips, build_split
from esc50.assembly.task import build_task, build_watch
from esc50.assembly.trainer import build_batches, build_trainer
from esc50.data.checklist import check_clips
from esc50.data.clip import class_names
from esc50.data.folds import write_split
from esc50.errors import DataError
from esc50.files import write_atomically
from esc50.results.record import read_metrics
from esc50.results.standing import cross_validated
from esc50.runs.test import check_same_clips, facts, test
from esc50.training.checkpoints import (
    Description,
    check_same_config,
    checkpoint_callback,
    checkpoint_state,
    copy_checkpoints,
    describe,
    find_last_checkpoint,
    is_finished,
    load_checkpoint,
)
from esc50.training.memory import keep_freed_memory
from esc50.training.optimistic import OptimisticTest
from esc50.training.precision import check_device, resolve_precision
from esc50.training.quiet import quieten
from esc50.training.recompute import checkpoint_blocks
from esc50.training.threads import share_cores
from esc50.watch.events import TENSORBOARD, RunEvents

log = logging.getLogger(__name__)


def train(cfg: DictConfig, folder: Path) -> float | None:
    """Prepare the data, train, test the chosen checkpoint and leave the whole record in `folder`.

    Returns the validation accuracy of the tested checkpoint, None where the protocol has no validation.
    """
    started = time.monotonic()
    quieten()
    keep_freed_memory()
    share_cores(num_workers=cfg.loader.num_workers, num_processes=cfg.trainer.devices)
    source = find_last_checkpoint(cfg.resume) if cfg.resume else None
    stored = load_checkpoint(source) if source else None
    check_device(accelerator=cfg.trainer.accelerator, devices=cfg.trainer.devices, strategy=cfg.trainer.strategy)
    settle_precision(cfg, stored)
    config = OmegaConf.to_container(cfg, resolve=True)
    if stored:
        check_same_config(config, stored["esc50"]["config"])
        copy_checkpoints(source, folder)
        source = folder / "checkpoints" / source.name
    standing, names_then = cross_validated(cfg.scored_by, config) if cfg.scored_by else (None, None)
    with write_atomically(folder / "config.yaml") as temporary:
        OmegaConf.save(OmegaConf.create(config), temporary)

    if "weights" in cfg.model:  # an unknown name or weights that cannot be had should not show after the data was fetched
        build_task(cfg, num_classes=2)
    L.seed_everything(cfg.seed, verbose=False)
    clips = build_clips(cfg)
    split, names = build_split(cfg, clips), class_names(clips)
    if len(names) < 2:
        raise DataError(f"{cfg.data.root} has one class only, {names[0]}; there is nothing to tell apart, wanted two or more")
    if standing and names != names_then:
        raise DataError(
            f"scored_by={cfg.scored_by}: its runs have the classes {', '.join(names_then)}, the data at"
            f" {cfg.data.root} has {', '.join(names)}; give the sweep on the same data"
        )
    if stored:
        check_same_clips(stored, split, names, cfg.data.root)
    if cfg.trainer.check_data:
        check_clips(clips, split=split)
    write_split(split, folder / "split.csv")
    task = build_task(cfg, num_classes=len(names))
    data = build_batches(cfg, clips, split)
    if not stored:
        task.front_end.fit(data.rows, data.datasets["train"].indices)
    if cfg.model.gradient_checkpointing:
        log.info("gradient checkpointing of %d blocks", checkpoint_blocks(task.model))
    if cfg.trainer.compile:
        task.model.compile()

    checkpoints = checkpoint_callback(
        folder, monitor=cfg.checkpoint.monitor if split.val else None, save_top_k=cfg.checkpoint.save_top_k
    )
    logger = RunEvents(folder, version=TENSORBOARD, purge_step=stored["global_step"] if stored else 0)
    optimistic = OptimisticTest() if cfg.report_optimistic and split.test else None
    callbacks = [
        checkpoints,
        Description(config, names, split),
        *_stopping(cfg),
        *build_watch(cfg),
        *([] if optimistic is None else [optimistic]),
    ]
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
    if not trainer.is_global_zero:  # the first process tests
        return None

    best = checkpoints.best_model_path if split.val else ""
    chosen = Path(best) if best else folder / "checkpoints" / "last.ckpt"
    record = {
        "checkpoint": chosen.resolve().relative_to(folder.resolve()).as_posix(),
        **facts(cfg, split, names),
        "seconds": round(time.monotonic() - started, 1),
        "train_seconds": round(fit_seconds, 1),
    }
    if standing is not None:
        record |= {"scored_by": standing}
    if optimistic is not None:
        record |= {"optimistic_test_accuracy": optimistic.accuracy, "optimistic_epoch": optimistic.epoch}
    if cfg.trainer.overfit_batches is not None:
        log.info(
            "trained on %d clips only (trainer.overfit_batches=%d), of which %.0f %% were right in the last epoch; the"
            " test score below means nothing",
            len(split.train),
            cfg.trainer.overfit_batches,
            100 * trainer.callback_metrics.get("accuracy/train", float("nan")),
        )
    last_step = max(trainer.global_step, stored["global_step"] if stored else 0)
    value = test(load_checkpoint(chosen), data, folder, record, started, step=last_step)
    describe(chosen, **what_it_is_worth(read_metrics(folder)))
    return value


def what_it_is_worth(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """What the tested checkpoint should tell whoever uses it: the temperature of its probabilities, None where no validation
    clips were there to fit it to; the score of its test, None where nothing was tested; and that of its recipe, if known."""
    tested = metrics["test_accuracy"] is not None
    score = {key: metrics[key] for key in ("test_accuracy", "protocol", "fold", "clips")} if tested else None
    return {"temperature": metrics["temperature"], "score": score, "scored_by": metrics.get("scored_by")}


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


def _stopping(cfg: DictConfig) -> list[L.Callback]:
    if cfg.early_stopping.patience is None:
        return []
    monitor = cfg.checkpoint.monitor
    return [EarlyStopping(monitor, mode="min" if monitor.endswith("loss") else "max", patience=cfg.early_stopping.patience)]
