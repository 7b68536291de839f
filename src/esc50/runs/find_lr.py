"""The learning-rate range test on the data, model and augmentation of a run."""

import itertools
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import lightning as L
import torch
import torch.nn.functional as F
from omegaconf import DictConfig
from torch.utils.tensorboard import SummaryWriter

from esc50.assembly.data import build_clips, build_split
from esc50.assembly.task import build_optimizer, build_task
from esc50.assembly.trainer import build_batches
from esc50.augment.draws import Draws
from esc50.batches import WholeBatches
from esc50.data.clip import class_names
from esc50.files import write_atomically
from esc50.training.lr_finder import find_lr as range_test
from esc50.training.memory import keep_freed_memory
from esc50.training.precision import device_for
from esc50.training.threads import share_cores
from esc50.watch.lr_page import draw_curve

log = logging.getLogger(__name__)


def find_lr(cfg: DictConfig, folder: Path) -> None:
    """Learning-rate range test on the training clips with the chosen augmentation; leaves lr_finder.png and .json."""
    L.seed_everything(cfg.seed, verbose=False)
    keep_freed_memory()
    share_cores(num_workers=cfg.loader.num_workers)
    clips = build_clips(cfg)
    device = device_for(cfg.trainer.accelerator)
    task = build_task(cfg, num_classes=len(class_names(clips))).to(device)
    data = build_batches(cfg, clips, build_split(cfg, clips))
    task.front_end.fit(data.rows, data.datasets["train"].indices)
    task.augment.train()

    loader = data.train_dataloader()
    batches = loader.batch_sampler
    assert isinstance(batches, WholeBatches)

    def loss_of(model: torch.nn.Module, batch: dict, step: int) -> torch.Tensor:
        batch = {key: value.to(device) for key, value in batch.items()}
        with torch.no_grad():
            x, target_probs = task.augmented(batch, Draws(seed=cfg.seed, epoch=0, batch=step))
        logits = model.train()(task.laid_out(x))["logits"]
        return F.cross_entropy(logits, target_probs, label_smoothing=cfg.trainer.label_smoothing)

    def epochs() -> Iterator[dict]:
        for epoch in itertools.count():
            batches.sampler.set_epoch(epoch)
            yield from loader

    curve = range_test(task.model, epochs(), loss_of=loss_of, optimizer=build_optimizer(cfg))
    figure = draw_curve(curve)
    with write_atomically(folder / "lr_finder.png") as temporary:
        figure.savefig(temporary, format="png")
    with write_atomically(folder / "lr_finder.json") as temporary:
        temporary.write_text(
            json.dumps({"suggestion": curve.suggestion, "lrs": curve.lrs, "losses": curve.losses}), encoding="utf-8"
        )
    with SummaryWriter(folder / "tensorboard") as writer:
        writer.add_figure("lr/range_test", figure)
        for step, (lr, loss) in enumerate(zip(curve.lrs, curve.losses, strict=True)):
            writer.add_scalar("lr/range_test_rate", lr, step)
            writer.add_scalar("loss/range_test", loss, step)
    if curve.suggestion is None:
        log.info("the loss never falls; no rate to suggest. Curve in %s", folder / "lr_finder.png")
    else:
        log.info(
            "suggestion: optimizer.lr=%.2g, where the loss falls fastest. Curve in %s", curve.suggestion, folder / "lr_finder.png"
        )
