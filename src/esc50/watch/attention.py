"""Where does it look? Class activation maps of a few clips of each evaluation."""

import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from typing import cast

import lightning as L
from torch.utils.tensorboard import SummaryWriter

from esc50.batches import batches_of
from esc50.config.kinds import FewClips, ForClass, PositiveInt
from esc50.drawing import pixels
from esc50.errors import ConfigError, require
from esc50.explain.cam import check_layer, grad_cam, model_input
from esc50.explain.map_picture import ExplainedClip, draw_maps
from esc50.training.task import Classifier
from esc50.watch.evaluation import Evaluation, EvaluationPanel
from esc50.watch.events import writer_of

log = logging.getLogger(__name__)

FOR_CLASS = ("predicted", "truth")


class Attention(EvaluationPanel):
    """Writes `attention/maps_<role>`: the same `num_clips` clips in every evaluation, of as many classes as possible, each
    with its map.

    `for_class`: `predicted` or `truth`, the class whose map is drawn. `layer`: the module whose feature map is weighed, None
    for the last one; a name that the model does not have is refused when training begins. Where there can be no maps, for
    want of captum (extra: explain) or because of the network, a run says so once.
    """

    def __init__(self, *, every_n_epochs: PositiveInt, num_clips: FewClips, for_class: ForClass, layer: str | None):
        super().__init__(every_n_epochs=every_n_epochs)
        assert num_clips >= 1 and for_class in FOR_CLASS
        self.num_clips, self.for_class, self.layer = num_clips, for_class, layer

    def on_fit_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if trainer.logger is not None and trainer.is_global_zero:
            self._is_installed(writer_of(trainer))
        if self.layer is not None:
            task = cast(Classifier, pl_module)
            check_layer(task.model, model_input(task, batches_of(trainer).rows.take([0])), self.layer)

    def write(self, writer: SummaryWriter, evaluation: Evaluation) -> None:
        if not self._is_installed(writer):
            return
        try:
            clips = explained_clips(evaluation, num_clips=self.num_clips, for_class=self.for_class, layer=self.layer)
        except ConfigError as error:
            if self.layer is not None:
                raise
            _say_once(str(error), str(writer.log_dir))  # a network without them can be trained all the same
            return
        figure = draw_maps(clips, evaluation.task.front_end.recipe)
        writer.add_image(f"attention/maps_{evaluation.role}", pixels(figure), evaluation.step, dataformats="HWC")

    def _is_installed(self, writer: SummaryWriter) -> bool:
        try:
            require("the panel watch.attention", "captum")
        except ConfigError as error:
            _say_once(str(error), str(writer.log_dir))
            return False
        return True


@cache
def _say_once(reason: str, folder: str) -> None:
    """Once a run, whose events lie in `folder`: every validation would say it again, and the test."""
    log.warning("no maps in TensorBoard: %s", reason)


def explained_clips(evaluation: Evaluation, *, num_clips: int, for_class: str, layer: str | None) -> list[ExplainedClip]:
    """Some clips of an evaluation with their maps. Raises ConfigError as `grad_cam`."""
    task, predictions = evaluation.task, evaluation.predictions
    chosen = varied(predictions.targets.tolist(), num_clips)
    stored = evaluation.data.rows.take([evaluation.indices[position] for position in chosen])
    classes = (predictions.predicted if for_class == "predicted" else predictions.targets)[chosen].tolist()
    maps = grad_cam(task.model, model_input(task, stored), classes, layer=layer)
    names = predictions.class_names
    return [
        ExplainedClip(
            name=predictions.filenames[position],
            stored=of_clip,
            map=values,
            explained=names[explained],
            prob=float(predictions.probs[position, explained]),
            truth=names[predictions.targets[position]],
        )
        for position, of_clip, values, explained in zip(chosen, stored, maps, classes, strict=True)
    ]


def varied(targets: Sequence[int], count: int) -> list[int]:
    """Positions of `count` clips, the same ones each time: one of every class before a second one of any, and of more
    classes than can be shown every so many-th."""
    seen: Counter[int] = Counter()
    rounds: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for position, target in enumerate(targets):
        rounds[seen[target]].append((target, position))
        seen[target] += 1
    chosen: list[int] = []
    for number in sorted(rounds):
        members = [position for _, position in sorted(rounds[number])]
        room = count - len(chosen)
        chosen += members if len(members) <= room else [members[i * len(members) // room] for i in range(room)]
    return chosen
