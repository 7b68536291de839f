"""From a configuration to the loop that trains: batches, Lightning's trainer and what measures it."""

from pathlib import Path
from typing import Any

import lightning as L
from omegaconf import DictConfig

from esc50.assembly.data import build_recipe, build_rows
from esc50.batches import ClipBatches
from esc50.config.schema import Trainer
from esc50.data.clip import Clip
from esc50.data.folds import Split
from esc50.training.checkpoints import AtomicCheckpointIO
from esc50.training.precision import LIGHTNING_NAMES
from esc50.training.profile import PartsProfiler, StepTrace
from esc50.training.progress import RunProgress
from esc50.watch.events import RunEvents


def build_batches(cfg: DictConfig, clips: tuple[Clip, ...], split: Split) -> ClipBatches:
    """Data loaders of a split, from the store."""
    rows = build_rows(cfg, clips, build_recipe(cfg))
    return ClipBatches(
        clips,
        rows,
        split,
        batch_size=cfg.loader.batch_size,
        seed=cfg.seed,
        balance=cfg.data.balance,
        num_workers=cfg.loader.num_workers,
    )


def build_trainer(cfg: DictConfig, folder: Path, logger: RunEvents, callbacks: list[L.Callback]) -> L.Trainer:
    """The trainer of a run in `folder`."""
    options = cfg.trainer
    callbacks, profiler = [*callbacks, RunProgress()], None
    if options.profile is not None:
        profiler = PartsProfiler(folder / "parts.csv")
        logger.profile = profiler.profile
    if options.profile == "trace":
        callbacks.append(StepTrace(folder / "trace.json"))
    more = {key: value for key, value in options.items() if key not in Trainer.model_fields}  # added with +trainer.
    standard: dict[str, Any] = {"num_sanity_val_steps": 0, "log_every_n_steps": 1, "enable_model_summary": False}
    return L.Trainer(
        default_root_dir=folder,
        logger=logger,
        callbacks=callbacks,
        profiler=profiler,
        plugins=[AtomicCheckpointIO()],
        max_epochs=options.max_epochs,
        accelerator=options.accelerator,
        devices=options.devices,
        strategy=options.strategy,
        precision=LIGHTNING_NAMES[options.precision],
        gradient_clip_val=options.gradient_clip,
        accumulate_grad_batches=options.accumulate,
        deterministic=options.deterministic,
        detect_anomaly=options.detect_anomaly,
        use_distributed_sampler=False,
        **(standard | more),
    )
