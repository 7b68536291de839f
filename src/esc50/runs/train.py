"""One run from configuration to record: prepare, fit, test."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import EarlyStopping
from omegaconf import DictConfig

from esc50.assembly.task import build_watch
from esc50.assembly.trainer import build_trainer
from esc50.config.plain import plain
from esc50.results.record import read_metrics
from esc50.runs.preparation import (
    Earlier,
    Prepared,
    check_weights,
    find_earlier,
    prepare,
    prepare_process,
    settle_precision,
    standing_score,
    take_over,
    write_config,
)
from esc50.runs.test import facts, test
from esc50.training.checkpoint_files import describe, load_checkpoint
from esc50.training.checkpoints import BestAndLast, Description, checkpoint_callback, checkpoint_state, is_finished
from esc50.training.optimistic import OptimisticTest
from esc50.watch.events import TENSORBOARD, RunEvents

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Loop:
    """What trains, and those of its callbacks that are asked afterwards."""

    trainer: L.Trainer
    checkpoints: BestAndLast
    optimistic: OptimisticTest | None


def train(cfg: DictConfig, folder: Path) -> float | None:
    """Prepare the data, train, test the chosen checkpoint and leave the whole record in `folder`.

    Returns the validation accuracy of the tested checkpoint, None where the protocol has no validation.
    """
    started = time.monotonic()
    prepare_process(cfg)
    earlier = find_earlier(cfg)
    settle_precision(cfg, earlier.stored if earlier else None)
    config = plain(cfg, resolve=True)
    earlier = take_over(earlier, config, folder)
    standing = standing_score(cfg, config)
    write_config(config, folder)
    check_weights(cfg)
    prepared = prepare(cfg, folder, earlier=earlier, standing=standing)
    loop = build_loop(cfg, config, folder, prepared, earlier)
    train_seconds = fit(loop, prepared, folder, earlier, max_epochs=cfg.trainer.max_epochs)
    if not loop.trainer.is_global_zero:  # the first process tests
        return None
    chosen = chosen_checkpoint(loop, prepared, folder)
    record = {
        "checkpoint": chosen.resolve().relative_to(folder.resolve()).as_posix(),
        **facts(cfg, prepared.split, prepared.names),
        "train_seconds": round(train_seconds, 1),
        **({} if standing is None else {"scored_by": standing[0]}),
        **optimistic_score(loop),
    }
    if cfg.trainer.overfit_batches is not None:
        warn_of_few_clips(loop, prepared, num_batches=cfg.trainer.overfit_batches)
    last_step = max(loop.trainer.global_step, earlier.stored["global_step"] if earlier else 0)
    value = test(load_checkpoint(chosen), prepared.data, folder, record, started, step=last_step)
    describe(chosen, **what_it_is_worth(read_metrics(folder)))
    return value


def build_loop(cfg: DictConfig, config: Mapping[str, Any], folder: Path, prepared: Prepared, earlier: Earlier | None) -> Loop:
    """The trainer with its logger and callbacks: checkpoints, early stopping and the chosen panels."""
    split = prepared.split
    checkpoints = checkpoint_callback(
        folder, monitor=cfg.checkpoint.monitor if split.val else None, save_top_k=cfg.checkpoint.save_top_k
    )
    logger = RunEvents(folder, version=TENSORBOARD, purge_step=earlier.stored["global_step"] if earlier else 0)
    optimistic = OptimisticTest() if cfg.report_optimistic and split.test else None
    callbacks = [
        checkpoints,
        Description(config, prepared.names, split),
        *_stopping(cfg),
        *build_watch(cfg),
        *([] if optimistic is None else [optimistic]),
    ]
    return Loop(trainer=build_trainer(cfg, folder, logger, callbacks), checkpoints=checkpoints, optimistic=optimistic)


def fit(loop: Loop, prepared: Prepared, folder: Path, earlier: Earlier | None, *, max_epochs: int) -> float:
    """Train from where the earlier run stood to the last epoch, unless that is done; returns the seconds it took."""
    started = time.monotonic()
    if earlier is not None and is_finished(earlier.stored, max_epochs=max_epochs):
        log.info("the run is finished after %d epochs and only tested again", earlier.stored["epoch"] + 1)
        loop.checkpoints.load_state_dict(checkpoint_state(earlier.stored))
        return time.monotonic() - started
    try:
        source = earlier.checkpoint if earlier else None
        loop.trainer.fit(prepared.task, datamodule=prepared.data, ckpt_path=source, weights_only=True)
    except SystemExit:  # what Lightning makes of Ctrl-C, without a word
        if loop.trainer.interrupted:
            raise KeyboardInterrupt(f"resume={folder} goes on from the last whole epoch") from None
        raise
    return time.monotonic() - started


def chosen_checkpoint(loop: Loop, prepared: Prepared, folder: Path) -> Path:
    """The checkpoint to test: the best on the validation clips, the last where there are none."""
    best = loop.checkpoints.best_model_path if prepared.split.val else ""
    return Path(best) if best else folder / "checkpoints" / "last.ckpt"


def optimistic_score(loop: Loop) -> dict[str, Any]:
    """What the best epoch on the test fold scored, where that was asked for."""
    if loop.optimistic is None:
        return {}
    return {"optimistic_test_accuracy": loop.optimistic.accuracy, "optimistic_epoch": loop.optimistic.epoch}


def warn_of_few_clips(loop: Loop, prepared: Prepared, *, num_batches: int) -> None:
    """Say how well the few clips were learnt by heart, and that the score means nothing."""
    log.info(
        "trained on %d clips only (trainer.overfit_batches=%d), of which %.0f %% were right in the last epoch; the"
        " test score below means nothing",
        len(prepared.split.train),
        num_batches,
        100 * loop.trainer.callback_metrics.get("accuracy/train", float("nan")),
    )


def what_it_is_worth(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """What the tested checkpoint should tell whoever uses it: the temperature of its probabilities, None where no validation
    clips were there to fit it to; the score of its test, None where nothing was tested; and that of its recipe, if known."""
    tested = metrics["test_accuracy"] is not None
    score = {key: metrics[key] for key in ("test_accuracy", "protocol", "fold", "clips")} if tested else None
    return {"temperature": metrics["temperature"], "score": score, "scored_by": metrics.get("scored_by")}


def _stopping(cfg: DictConfig) -> list[L.Callback]:
    if cfg.early_stopping.patience is None:
        return []
    monitor = cfg.checkpoint.monitor
    return [EarlyStopping(monitor, mode="min" if monitor.endswith("loss") else "max", patience=cfg.early_stopping.patience)]
