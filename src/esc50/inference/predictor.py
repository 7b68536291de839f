"""A trained model that labels recordings, from its checkpoint alone."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch

from esc50.errors import ConfigError, DataError
from esc50.inference.answer import Prediction, Threshold, answer
from esc50.inference.recordings import Cut, Piece, pieces_of_file, pieces_of_samples
from esc50.models.network import Network
from esc50.results.predictions import softmax
from esc50.training.precision import in_float32

File = TypeVar("File", bound=str | None)

NUM_TOP = 5
BATCH_SIZE = 16


class Predictor:
    """Labels recordings: `load("outputs/train/<time>").predict("dog.wav").label`.

    `description` is what a checkpoint says of itself besides its weights: `class_names`, and where they are known the
    `temperature` of its probabilities, the `score` of its test, or `scored_by`, the score of its recipe.
    """

    def __init__(self, network: Network, description: Mapping[str, Any]):
        self.network = network.eval()
        self.recipe = network.front_end.recipe
        self.class_names: tuple[str, ...] = tuple(description["class_names"])
        self.description = description

    @property
    def temperature(self) -> float:
        """By what logits are divided; 1 where no validation clips were there to fit it to."""
        return self.description.get("temperature") or 1.0

    @property
    def is_calibrated(self) -> bool:
        """Whether the temperature was fitted to validation clips."""
        return self.description.get("temperature") is not None

    def predict(
        self,
        sound: str | Path | np.ndarray,
        *,
        sample_rate: int | None = None,
        window: float | None = None,
        hop: float | None = None,
        min_probability: float | None = None,
        max_entropy: float | None = None,
        num_top: int = NUM_TOP,
        batch_size: int = BATCH_SIZE,
    ) -> Prediction:
        """What the model hears in a file, or in samples `[time]` or `[time, channels]` at `sample_rate` Hz (floating point
        within -1..1, int16 or int32).

        Short sounds are padded as in training. Long ones are cut into windows of `window` seconds (None: the length that
        the model learnt) every `hop` seconds (None: windows touch). The label is `unknown` where the best probability is
        below `min_probability`, or the entropy, from 0 to 1, above `max_entropy`. Raises DataError for what cannot be read,
        ConfigError for values that cannot be.
        """
        cut = self._checked(Cut(window=window, hop=hop), num_top, batch_size)
        threshold = Threshold(min_probability=min_probability, max_entropy=max_entropy)
        if isinstance(sound, str | Path):
            file, pieces = str(sound), pieces_of_file(Path(sound), self.recipe, cut)
        else:
            if not isinstance(sample_rate, int | np.integer) or sample_rate < 1:
                raise ConfigError(f"sample_rate={sample_rate}: wanted the rate of the samples in Hz, such as 44100")
            file, pieces = None, pieces_of_samples(np.asarray(sound), int(sample_rate), self.recipe, cut)
        ((_, found),) = self._answers([(file, pieces)], threshold, num_top, batch_size)
        if isinstance(found, DataError):
            raise found
        return found

    def predict_files(
        self,
        paths: Iterable[str | Path],
        *,
        window: float | None = None,
        hop: float | None = None,
        min_probability: float | None = None,
        max_entropy: float | None = None,
        num_top: int = NUM_TOP,
        batch_size: int = BATCH_SIZE,
    ) -> Iterator[tuple[str, Prediction | DataError]]:
        """The same for many files, whose windows share batches: path and answer one by one, in order; the error of a file
        that cannot be read in its answer's place."""
        cut = self._checked(Cut(window=window, hop=hop), num_top, batch_size)
        threshold = Threshold(min_probability=min_probability, max_entropy=max_entropy)
        return self._answers(
            ((str(path), pieces_of_file(Path(path), self.recipe, cut)) for path in paths), threshold, num_top, batch_size
        )

    @torch.no_grad()
    def logits(self, stored: np.ndarray) -> np.ndarray:
        """Of stored values `[batch, ...]`, as `Recipe.compute` gives them: `[batch, classes]`, in float32, as in the test."""
        with in_float32(self.network.device.type):
            return self.network(torch.from_numpy(stored).to(self.network.device))["logits"].float().cpu().numpy()

    def probabilities(self, stored: np.ndarray) -> np.ndarray:
        """The same as probabilities, `[batch, classes]`, by the temperature. Raises DataError where they are not finite."""
        logits = self.logits(stored)
        if not np.isfinite(logits).all():
            raise DataError(
                "the model's answers are not finite, its training has diverged; train again with a lower optimizer.lr"
            )
        return softmax(logits / self.temperature)

    def _checked(self, cut: Cut, num_top: int, batch_size: int) -> Cut:
        cut.check(self.recipe)
        if num_top < 1 or batch_size < 1:
            raise ConfigError(f"num_top={num_top}, batch_size={batch_size}: wanted 1 or more of both")
        return cut

    def _answers(
        self, sounds: Iterable[tuple[File, Iterator[Piece]]], threshold: Threshold, num_top: int, batch_size: int
    ) -> Iterator[tuple[File, Prediction | DataError]]:
        waiting: deque[_Recording[File]] = deque()
        batch: list[tuple[_Recording[File], np.ndarray]] = []

        def compute() -> None:
            if batch:
                for (recording, _), probs in zip(
                    batch, self.probabilities(np.stack([stored for _, stored in batch])), strict=True
                ):
                    recording.probs.append(probs)
                batch.clear()

        def done() -> Iterator[tuple[File, Prediction | DataError]]:
            while waiting and waiting[0].is_done:
                recording = waiting.popleft()
                yield (
                    recording.file,
                    recording.error
                    or answer(
                        np.stack(recording.probs),
                        recording.places,
                        self.class_names,
                        threshold=threshold,
                        num_top=num_top,
                        file=recording.file,
                        calibrated=self.is_calibrated,
                    ),
                )

        for file, pieces in sounds:
            recording = _Recording(file=file)
            waiting.append(recording)
            try:
                for piece in pieces:
                    recording.places.append((piece.start, piece.end))
                    batch.append((recording, piece.stored))
                    if len(batch) >= batch_size:
                        compute()
            except DataError as error:
                recording.error = error
            recording.is_read = True
            yield from done()
        compute()
        yield from done()


@dataclass(kw_only=True, eq=False)
class _Recording(Generic[File]):
    """A recording on its way: `places` of its windows, and the probabilities of those that are computed."""

    file: File
    places: list[tuple[float, float]] = field(default_factory=list)
    probs: list[np.ndarray] = field(default_factory=list)
    error: DataError | None = None
    is_read: bool = False

    @property
    def is_done(self) -> bool:
        return self.is_read and (self.error is not None or len(self.probs) == len(self.places))
