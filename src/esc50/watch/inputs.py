"""What did the network see? The first batch of training after augmentation, as pictures and as sound."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import lightning as L
import numpy as np
import torch
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from esc50.augment.draws import Draws
from esc50.batches import batches_of
from esc50.config.kinds import FewClips
from esc50.data.clip import Clip, class_names
from esc50.drawing import pixels, shortened
from esc50.features.front_end import FrontEnd
from esc50.features.picture import Picture, picture_of
from esc50.training.task import Classifier
from esc50.watch.events import writer_of
from esc50.watch.examples import read_all
from esc50.watch.spectrogram_grid import draw_grid, shared_range

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALLEST_SHARE = 0.005  # of a class that is named in a mixture


class Inputs(L.Callback):
    """Writes `input/pictures`, the network's input for the first `num_clips` of the batch that training begins with, also
    after a resume, and what can be heard of it: `input/sounds/<n>`, the augmented samples (before masks and mixup of the
    spectrogram where there is one), or `input/sounds_original/<n>` where spectrograms are stored and no sound is augmented.
    """

    def __init__(self, *, num_clips: FewClips):
        assert num_clips >= 1
        self.num_clips = num_clips
        self._is_due = False

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._is_due = trainer.logger is not None and trainer.is_global_zero

    def on_train_batch_start(self, trainer: L.Trainer, pl_module: L.LightningModule, batch: Any, batch_idx: int) -> None:
        if not self._is_due:
            return
        self._is_due = False
        task, data = cast(Classifier, pl_module), batches_of(trainer)
        key = {
            "seed": task.seed,
            "epoch": trainer.current_epoch,
            "batch": batch_idx,
            "rank": trainer.global_rank,
            "world": trainer.world_size,
        }
        with torch.no_grad(), trainer.precision_plugin.train_step_context():
            x, target_probs = task.augmented(batch, Draws(**key))
            sounds = augmented_sound(task, batch["input"], x, Draws(**key))
        clips = [data.clips[i] for i in batch["index"][: self.num_clips].tolist()]
        write_inputs(
            writer_of(trainer),
            clips,
            self._first(x),
            self._first(target_probs),
            None if sounds is None else self._first(sounds),
            class_names(data.clips),
            task.front_end,
            step=trainer.global_step,
        )

    def _first(self, of_batch: Tensor) -> np.ndarray:
        return of_batch[: self.num_clips].float().cpu().numpy()


def write_inputs(
    writer: SummaryWriter,
    clips: Sequence[Clip],
    x: np.ndarray,
    target_probs: np.ndarray,
    sounds: np.ndarray | None,
    names: tuple[str, ...],
    front_end: FrontEnd,
    *,
    step: int,
) -> None:
    """Add the picture of what the network got of `clips`, `x` with label probabilities `[clips, classes]`, and the samples
    `sounds` `[clips, time]`, or those of the files where there are none."""
    titles = [f"{n}. {mixture}" for n, mixture in enumerate(mixtures(target_probs, names), start=1)]
    writer.add_image("input/pictures", pixels(draw_inputs(x, sounds, titles, front_end)), step, dataformats="HWC")
    recipe = front_end.recipe
    kind, heard = ("sounds_original", read_all(clips, recipe)) if sounds is None else ("sounds", sounds)
    for n, waveform in enumerate(heard, start=1):
        if waveform is not None:
            writer.add_audio(f"input/{kind}/{n}", waveform.clip(-1, 1), step, sample_rate=recipe.sample_rate)


def augmented_sound(task: Classifier, stored: Tensor, x: Tensor, draws: Draws) -> Tensor | None:
    """The augmented samples `[batch, time]` behind the network's input `x`; None where spectrograms are stored.

    `draws` are those of the batch, anew: samples are augmented first, so they get the numbers that they got for `x`.
    """
    front_end = task.front_end
    if front_end.recipe.keeps_images:
        return None
    if front_end.log_mel is None:
        return x if front_end.normalization == "none" else x * front_end.std + front_end.mean
    sounds = front_end.decode(stored)
    for module in task.augmentations("waveform"):
        sounds = module(sounds, draws)
    return sounds


def draw_inputs(x: np.ndarray, sounds: np.ndarray | None, titles: Sequence[str], front_end: FrontEnd) -> "Figure":
    """The network's images `x` `[clips, channels, mel, frames]` in the values that it gets (of several channels, which hold
    one spectrogram, the first); where it gets samples, the spectrograms of `sounds` `[clips, time]` in dB."""
    recipe, title = front_end.recipe, "Training input after augmentation"
    if recipe.mel is None:
        assert sounds is not None
        pictures = [picture_of(waveform, recipe) for waveform in sounds]
        floor, ceiling = shared_range(pictures)
        return draw_grid(pictures, titles, title=title, scale="dB", floor=floor, ceiling=ceiling)
    images, frequencies = x[:, 0], recipe.mel.mel_frequencies()
    finite = images[np.isfinite(images)]
    floor, ceiling = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    pictures = [
        Picture(decibels=image, seconds=recipe.seconds, frequencies=frequencies, floor=floor, ceiling=ceiling) for image in images
    ]
    return draw_grid(pictures, titles, title=title, scale="value that the network gets", floor=floor, ceiling=ceiling)


def mixtures(target_probs: np.ndarray, names: tuple[str, ...]) -> list[str]:
    """The classes of each example `[batch, classes]`, with their shares where there are several, the largest first."""
    texts = []
    for probs in target_probs:
        parts = [k for k in np.argsort(-probs, kind="stable") if probs[k] >= SMALLEST_SHARE]
        if len(parts) == 1:
            texts.append(shortened(names[parts[0]]))
        else:
            texts.append("\n+ ".join(f"{100 * probs[k]:.0f} % {shortened(names[k], most=36)}" for k in parts))
    return texts
