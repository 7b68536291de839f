"""The stages of a run on their own, as the scripts call them."""

import itertools
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import lightning as L
import torch
import torch.nn.functional as F
from omegaconf import DictConfig
from torch.utils.tensorboard import SummaryWriter

from esc50.augment.draws import Draws
from esc50.build import build_clips, build_optimizer, build_recipe, build_split, build_task
from esc50.data.checklist import inspect
from esc50.data.folds import leaking_sources, write_split
from esc50.data.manifest import TABLE, Clip, class_names, read_table
from esc50.errors import DataError
from esc50.features.logmel import LogMelSpec, log_mel
from esc50.features.store import build_store, store_folder
from esc50.files import write_atomically
from esc50.run import make_batches
from esc50.training.lr_finder import find_lr as range_test
from esc50.training.memory import keep_freed_memory
from esc50.watch.data_page import draw_page, save_page, write_tensorboard
from esc50.watch.lr_page import draw_curve

log = logging.getLogger(__name__)

# How a clip is drawn where the features are samples and say nothing of spectrograms.
PICTURE = {"n_fft": 2048, "win_length": 2048, "hop_length": 512, "n_mels": 64, "f_min": 0.0, "db_min": -70.0, "db_max": 40.0}


def download(cfg: DictConfig) -> None:
    """Fetch or generate the data and say what is there."""
    clips = build_clips(cfg)
    log.info("%d clips of %d classes at %s", len(clips), len(class_names(clips)), cfg.data.root)


def split(cfg: DictConfig, folder: Path) -> None:
    """Write split.csv and say how many clips have which role."""
    clips = build_clips(cfg)
    division = build_split(cfg, clips)
    write_split(division, folder / "split.csv")
    log.info("clips per fold %s", dict(sorted(Counter(clip.fold for clip in clips).items())))
    log.info("split=%s fold=%d: %s", division.protocol, cfg.fold,
             ", ".join(f"{len(members)} {role}" for role, members in division.roles().items()))
    leaks = leaking_sources(clips)
    log.info("sources in two folds: %s", ", ".join(leaks) if leaks else "none")
    log.info("written to %s", folder / "split.csv")


def precompute(cfg: DictConfig) -> None:
    """Bring the store up to date."""
    clips, recipe = build_clips(cfg), build_recipe(cfg)
    packed, _ = build_store(clips, root=cfg.paths.store, recipe=recipe, colormap=cfg.features.get("colormap"))
    log.info("%d clips ready in %s, %.0f MB packed", len(clips), store_folder(cfg.paths.store, clips, recipe),
             packed.nbytes / 1e6)


def inspect_data(cfg: DictConfig, folder: Path, *, show: Callable[[str], None]) -> None:
    """Run the checklist; leaves checklist.json, data_page.png and a TensorBoard page. Raises DataError where clips cannot
    be used."""
    clips = _listed_clips(cfg)
    checklist = inspect(clips, split=build_split(cfg, clips), sample_rate=cfg.features.sample_rate)
    with write_atomically(folder / "checklist.json") as temporary:
        temporary.write_text(json.dumps(checklist.to_dict(), indent=2) + "\n", encoding="utf-8")
    figures = draw_page(checklist, clips, spectrogram=lambda clip: _spectrogram(cfg, clip))
    save_page(figures, folder / "data_page.png")
    with SummaryWriter(folder / "tensorboard") as writer:
        write_tensorboard(writer, figures, checklist, clips, sample_rate=cfg.features.sample_rate)
    show(checklist.to_text())
    log.info("written to %s: checklist.json, data_page.png, tensorboard", folder)
    if not checklist.ok:
        raise DataError(f"{len(checklist.unusable)} findings make clips unusable, named above; mend or remove these files")


def find_lr(cfg: DictConfig, folder: Path) -> None:
    """Learning-rate range test on the training clips with the chosen augmentation; leaves lr_finder.png and .json."""
    L.seed_everything(cfg.seed, verbose=False)
    keep_freed_memory()
    clips = build_clips(cfg)
    device = L.Fabric(accelerator=cfg.trainer.accelerator, devices=1).device
    task = build_task(cfg, num_classes=len(class_names(clips))).to(device)
    data = make_batches(cfg, clips, build_split(cfg, clips))
    task.front_end.fit(data.rows, data.datasets["train"].indices)
    task.augment.train()

    loader = data.train_dataloader()

    def loss_of(model: torch.nn.Module, batch: dict, step: int) -> torch.Tensor:
        batch = {key: value.to(device) for key, value in batch.items()}
        with torch.no_grad():
            x, target_probs = task.augmented(batch, Draws(seed=cfg.seed, epoch=0, batch=step))
        logits = model.train()(task.laid_out(x))["logits"]
        return F.cross_entropy(logits, target_probs, label_smoothing=cfg.trainer.label_smoothing)

    def epochs() -> Iterator[dict]:
        for epoch in itertools.count():
            loader.batch_sampler.sampler.set_epoch(epoch)
            yield from loader

    curve = range_test(task.model, epochs(), loss_of=loss_of, optimizer=build_optimizer(cfg))
    figure = draw_curve(curve)
    with write_atomically(folder / "lr_finder.png") as temporary:
        figure.savefig(temporary, format="png")
    with write_atomically(folder / "lr_finder.json") as temporary:
        temporary.write_text(json.dumps({"suggestion": curve.suggestion, "lrs": curve.lrs, "losses": curve.losses}),
                             encoding="utf-8")
    with SummaryWriter(folder / "tensorboard") as writer:
        writer.add_figure("lr/range_test", figure)
        for step, (lr, loss) in enumerate(zip(curve.lrs, curve.losses, strict=True)):
            writer.add_scalar("lr/range_test_rate", lr, step)
            writer.add_scalar("loss/range_test", loss, step)
    if curve.suggestion is None:
        log.info("the loss never falls; no rate to suggest. Curve in %s", folder / "lr_finder.png")
    else:
        log.info("suggestion: optimizer.lr=%.2g, where the loss falls fastest. Curve in %s", curve.suggestion,
                 folder / "lr_finder.png")


def _listed_clips(cfg: DictConfig) -> tuple[Clip, ...]:
    """The clips of a table as it stands, with or without audio; of other data sets all clips."""
    if (Path(cfg.data.root) / TABLE).is_file():
        return read_table(cfg.data.root, subset=cfg.data.get("subset"))
    return build_clips(cfg)


def _spectrogram(cfg: DictConfig, clip: Clip):
    """Decibels `[mel, frames]`, length in seconds and band centres in Hz of one clip, as the checklist's page wants them."""
    recipe = build_recipe(cfg)
    mel = recipe.mel or LogMelSpec(sample_rate=recipe.sample_rate, f_max=recipe.sample_rate / 2, **PICTURE)
    return log_mel(recipe.read(clip.path), mel), recipe.seconds, mel.mel_frequencies()
