"""What panels of an evaluation share: they are shown the validation of some epochs, and the test once."""

from dataclasses import dataclass
from typing import cast

import lightning as L
from torch.utils.tensorboard import SummaryWriter

from esc50.batches import ClipBatches, batches_of
from esc50.config.kinds import PositiveInt
from esc50.data.clip import Clip, class_names
from esc50.results.predictions import Predictions, predictions_of
from esc50.training.task import Classifier
from esc50.watch.events import writer_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What was evaluated and how it came out.

    `role`: `val` or `test`; `step`: training steps so far, where the event goes on the axis; `predictions` and `clips` in
    one order; `data` gives stored features by the clips' numbers `indices`; `task` holds model and front end.
    """

    role: str
    step: int
    predictions: Predictions
    data: ClipBatches
    task: Classifier

    @property
    def clips(self) -> tuple[Clip, ...]:
        return self.data.split.roles()[self.role]

    @property
    def indices(self) -> list[int]:
        """Numbers of the clips in the whole data set, as `data.rows` knows them."""
        return self.data.datasets[self.role].indices.tolist()


class EvaluationPanel(L.Callback):
    """A panel that answers its question from an evaluation; subclasses say how in `write`.

    `every_n_epochs`: the validations that are shown, and always the last one. The run calls `write` for the test itself.
    """

    def __init__(self, *, every_n_epochs: PositiveInt):
        assert every_n_epochs >= 1
        self.every_n_epochs = every_n_epochs

    def write(self, writer: SummaryWriter, evaluation: Evaluation) -> None:
        """Add to `writer` what is to be seen, under tags that end in the role, at the evaluation's step."""
        raise NotImplementedError

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if trainer.logger is not None and trainer.is_global_zero and is_due(trainer, self.every_n_epochs):
            self.write(writer_of(trainer), validation(trainer, cast(Classifier, pl_module)))


def is_due(trainer: L.Trainer, every_n_epochs: PositiveInt) -> bool:
    """Whether this epoch is an n-th one or the last."""
    epochs = trainer.current_epoch + 1
    return epochs % every_n_epochs == 0 or epochs == trainer.max_epochs or trainer.should_stop


def last_step(trainer: L.Trainer) -> int:
    """The step that an epoch's end belongs to: its last one. The next number is where a resumed run goes on, and where the
    test's events begin."""
    return max(0, trainer.global_step - 1)


def validation(trainer: L.Trainer, task: Classifier) -> Evaluation:
    """The validation that has just ended."""
    data = batches_of(trainer)
    _, targets, probs = task.evaluated()
    predictions = predictions_of(data.split.val, targets, probs, names=class_names(data.clips))
    return Evaluation(role="val", step=last_step(trainer), predictions=predictions, data=data, task=task)
