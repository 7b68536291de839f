"""What a model answers: a label, how sure it is, and of long recordings when."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A class and its probability."""

    label: str
    probability: float


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """When the answer is `unknown`: the best probability is below `min_probability`, or the entropy of all, as a share of its
    greatest value (0: sure, 1: all classes alike), above `max_entropy`. None asks for neither."""

    min_probability: float | None = None
    max_entropy: float | None = None

    def label(self, probs: np.ndarray, names: Sequence[str]) -> str:
        """The name of the most probable class of `probs` `[classes]`, or `unknown`."""
        best = int(probs.argmax())
        unsure = self.min_probability is not None and probs[best] < self.min_probability
        vague = self.max_entropy is not None and entropy(probs) > self.max_entropy
        return UNKNOWN if unsure or vague else names[best]


@dataclass(frozen=True, kw_only=True)
class Window:
    """The answer for a part of a long recording, from `start` to `end` in seconds."""

    start: float
    end: float
    label: str
    probability: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Prediction:
    """The answer for a recording.

    `file` is its path, None where samples were given; `label` the most probable class, or `unknown`; `probability` that of
    the most probable class; `top` the most probable classes, best first; `probs` `[classes]` all of them, in the order of
    the model's `class_names`; `seconds` the length of the recording. A long recording has `windows`, and its own
    probabilities are the mean of theirs. `calibrated` says whether the probabilities were fitted to validation clips.
    """

    file: str | None
    label: str
    probability: float
    top: tuple[Guess, ...]
    probs: np.ndarray
    seconds: float
    windows: tuple[Window, ...]
    calibrated: bool

    @property
    def timeline(self) -> tuple[Window, ...]:
        """The windows with neighbours of one label put together, each with their mean probability; what lies between windows
        was not listened to and keeps them apart."""
        stretches: list[list[Window]] = []
        for window in self.windows:
            before = stretches[-1][-1] if stretches else None
            if before is not None and before.label == window.label and window.start <= before.end:
                stretches[-1].append(window)
            else:
                stretches.append([window])
        return tuple(
            Window(
                start=parts[0].start,
                end=parts[-1].end,
                label=parts[0].label,
                probability=float(np.mean([part.probability for part in parts])),
            )
            for parts in stretches
        )


def answer(
    probs: np.ndarray,
    places: Sequence[tuple[float, float]],
    names: Sequence[str],
    *,
    threshold: Threshold,
    num_top: int,
    file: str | None,
    calibrated: bool,
) -> Prediction:
    """From the probabilities of each window, `[windows, classes]`, and where they lie, `(start, end)` in seconds."""
    mean = probs.mean(axis=0)
    best = np.argsort(-mean, kind="stable")[:num_top]
    windows = (
        tuple(
            Window(start=start, end=end, label=threshold.label(one, names), probability=float(one.max()))
            for one, (start, end) in zip(probs, places, strict=True)
        )
        if len(probs) > 1
        else ()
    )
    return Prediction(
        file=file,
        label=threshold.label(mean, names),
        probability=float(mean.max()),
        top=tuple(Guess(label=names[i], probability=float(mean[i])) for i in best),
        probs=mean,
        seconds=max(end for _, end in places),
        windows=windows,
        calibrated=calibrated,
    )


def entropy(probs: np.ndarray) -> float:
    """Shannon's entropy of `[classes]` as a share of its greatest value: 0 where one class has all, 1 where all are alike."""
    some = probs[probs > 0]
    return float(-(some * np.log(some)).sum() / np.log(len(probs)))
