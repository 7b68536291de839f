"""What has it learned? Where the network puts each clip before it decides, in TensorBoard's projector."""

import logging
from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field
from torch.utils.tensorboard import SummaryWriter

from esc50.config.kinds import PositiveInt
from esc50.features.logmel import log_mel
from esc50.features.picture import drawn_log_mel
from esc50.features.recipe import Recipe
from esc50.watch.evaluation import Evaluation, EvaluationPanel
from esc50.watch.projector import write_projection

log = logging.getLogger(__name__)

COLUMNS = ("class", "predicted", "filename")


class Embedding(EvaluationPanel):
    """Puts the embeddings of an evaluation's clips into the projector as `embedding/<role>`, the last ones only, with class,
    prediction and file name, and a sprite of `sprite_size` pixels a side; and writes `embedding/neighbours_<role>`.

    Of more than `max_clips` clips, so many are taken at even distances.
    """

    def __init__(
        self,
        *,
        every_n_epochs: PositiveInt,
        max_clips: Annotated[int, Field(ge=1, le=5000)],
        sprite_size: Annotated[int, Field(ge=8, le=100)],
    ):
        super().__init__(every_n_epochs=every_n_epochs)
        self.max_clips, self.sprite_size = max_clips, sprite_size

    def write(self, writer: SummaryWriter, evaluation: Evaluation) -> None:
        predictions, number = evaluation.predictions, len(evaluation.clips)
        chosen = np.arange(number) if number <= self.max_clips else np.linspace(0, number - 1, self.max_clips).astype(int)
        vectors = evaluation.task.embeddings()[chosen]
        if not vectors.size:
            log.info("no embeddings in TensorBoard: the network gives none")
            return
        stored = evaluation.data.rows.take([evaluation.indices[i] for i in chosen])
        recipe = evaluation.task.front_end.recipe
        sprites = np.stack([sprite(values, recipe, size=self.sprite_size) for values in stored])
        names, targets = predictions.class_names, predictions.targets[chosen]
        rows = [
            (names[target], names[predicted], predictions.filenames[i])
            for i, target, predicted in zip(chosen, targets, predictions.predicted[chosen], strict=True)
        ]
        write_projection(writer.get_logdir(), f"embedding/{evaluation.role}", vectors, rows, columns=COLUMNS, sprites=sprites)
        if len(chosen) > 1:
            writer.add_scalar(f"embedding/neighbours_{evaluation.role}", neighbours_agree(vectors, targets), evaluation.step)


def sprite(stored: np.ndarray, recipe: Recipe, *, size: int) -> np.ndarray:
    """A small spectrogram of one clip's stored values, uint8 `[size, size, 3]`, high frequencies above, from the clip's
    quietest point in black to its loudest."""
    from matplotlib import colormaps
    from PIL import Image

    image = stored.astype(np.float32)
    if not recipe.keeps_images:
        mel = drawn_log_mel(recipe)
        # Frames only as many as there are pixels: a tenth of the work.
        image = log_mel(image / 32768, replace(mel, hop_length=max(mel.hop_length, len(stored) // size)))
    small = np.asarray(Image.fromarray(image[::-1].copy()).resize((size, size), Image.Resampling.BOX))
    low, high = float(small.min()), float(small.max())
    return (colormaps["magma"]((small - low) / max(high - low, 1e-6))[:, :, :3] * 255).astype(np.uint8)


def neighbours_agree(vectors: np.ndarray, targets: np.ndarray) -> float:
    """Share of the points whose nearest other point, by cosine, is of their class."""
    directions = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    likeness = directions @ directions.T
    np.fill_diagonal(likeness, -np.inf)
    return float((targets[likeness.argmax(axis=1)] == targets).mean())
