"""Which clips does it get right and wrong? The best and the worst of an evaluation by loss, to see and to hear."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import lightning as L
import numpy as np
from torch.utils.tensorboard import SummaryWriter

from esc50.config.kinds import FewClips, PositiveInt
from esc50.data.clip import Clip
from esc50.drawing import pixels, shortened
from esc50.errors import DataError
from esc50.features.picture import Picture, picture_of
from esc50.features.recipe import Recipe
from esc50.results.predictions import Predictions
from esc50.training.task import Classifier
from esc50.watch.evaluation import Evaluation, EvaluationPanel, is_due, validation
from esc50.watch.often_wrong import WrongCounts, clip_losses, write_often_wrong
from esc50.watch.spectrogram_grid import draw_grid, shared_range

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

OFTEN_WRONG = "often_wrong.csv"
WRONG_COLOR = "#b2182b"


class Examples(EvaluationPanel):
    """Writes `examples/worst_<role>` and `examples/best_<role>`, a picture of `num_clips` spectrograms each, and their
    sounds as `examples/sounds_worst_<role>/<rank>` and `examples/sounds_best_<role>/<rank>`.

    Every validation is counted, also one that is not shown or came before a resume; the clips that were ever wrong stand
    in often_wrong.csv in the run folder.
    """

    def __init__(self, *, every_n_epochs: PositiveInt, num_clips: FewClips):
        super().__init__(every_n_epochs=every_n_epochs)
        assert num_clips >= 1
        self.num_clips = num_clips
        self.counts = WrongCounts()

    def write(self, writer: SummaryWriter, evaluation: Evaluation) -> None:
        predictions, recipe = evaluation.predictions, evaluation.task.front_end.recipe
        worst, best = worst_and_best(clip_losses(predictions), self.num_clips)
        for name, chosen in (("worst", worst), ("best", best)):
            waveforms = read_all([evaluation.clips[i] for i in chosen], recipe)
            readable = [i for i, waveform in zip(chosen, waveforms, strict=True) if waveform is not None]
            sounds = [waveform for waveform in waveforms if waveform is not None]
            if not sounds:
                continue
            figure = draw_examples(predictions, readable, [picture_of(waveform, recipe) for waveform in sounds], name=name)
            tag = f"{name}_{evaluation.role}"
            writer.add_image(f"examples/{tag}", pixels(figure), evaluation.step, dataformats="HWC")
            for rank, waveform in enumerate(sounds, start=1):
                writer.add_audio(f"examples/sounds_{tag}/{rank}", waveform, evaluation.step, sample_rate=recipe.sample_rate)

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if trainer.sanity_checking:
            return
        found = validation(trainer, cast(Classifier, pl_module))
        self.counts.add(found.predictions)
        super().on_validation_end(trainer, pl_module)
        if trainer.logger is not None and trainer.is_global_zero and is_due(trainer, self.every_n_epochs):
            write_often_wrong(self.counts.rows(found.clips), Path(trainer.default_root_dir) / OFTEN_WRONG)

    def state_dict(self) -> dict[str, Any]:
        return self.counts.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.counts.load_state_dict(state_dict)


def worst_and_best(losses: np.ndarray, num_clips: int) -> tuple[list[int], list[int]]:
    """Numbers of the clips with the highest losses, highest first, and with the lowest, lowest first."""
    return (np.argsort(-losses, kind="stable")[:num_clips].tolist(), np.argsort(losses, kind="stable")[:num_clips].tolist())


def read_all(clips: Sequence[Clip], recipe: Recipe) -> list[np.ndarray | None]:
    """Samples of each clip `[time]`; None with a warning for a file that went away or broke after it was stored, since
    training does not need it."""
    waveforms: list[np.ndarray | None] = []
    for clip in clips:
        try:
            waveforms.append(recipe.read(clip.path))
        except DataError as error:
            log.warning("a clip is not shown: %s", error)
            waveforms.append(None)
    return waveforms


def draw_examples(predictions: Predictions, chosen: Sequence[int], pictures: Sequence[Picture], *, name: str) -> "Figure":
    """The `chosen` clips, by their places in the predictions, as `pictures`; wrong ones are titled in red."""
    floor, ceiling = shared_range(pictures)
    wrong = predictions.predicted != predictions.targets
    kind = "highest" if name == "worst" else "lowest"
    return draw_grid(
        pictures,
        [describe(predictions, i, rank=rank) for rank, i in enumerate(chosen, start=1)],
        title=f"{name.capitalize()} clips: {kind} loss first, red where the prediction is wrong",
        scale="dB",
        floor=floor,
        ceiling=ceiling,
        colors=[WRONG_COLOR if wrong[i] else "black" for i in chosen],
    )


def describe(predictions: Predictions, i: int, *, rank: int) -> str:
    """Three lines: the truth and the prediction with their probabilities, and the file."""
    names, probs = predictions.class_names, predictions.probs[i]
    truth, predicted = int(predictions.targets[i]), int(predictions.predicted[i])
    return (
        f"{rank}. is {shortened(names[truth], most=28)}: {100 * probs[truth]:.1f} %\n"
        f"predicted {shortened(names[predicted], most=24)}: {100 * probs[predicted]:.1f} %\n"
        f"{shortened(predictions.filenames[i], end=True)}"
    )
