"""How far probabilities can be trusted: are they right as often as they say, and do they rank a class's own clips first?"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

TEMPERATURES = (0.05, 20.0)  # a few clips that are all right, or all wrong, would ask for 0 or infinity


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """Clips by the probability of their most probable class, in bins of equal width.

    `edges`: `[bins + 1]` from 0 to 1, a bin holds its upper edge; `counts`: `[bins]` clips; `confidence`: `[bins]` mean
    probability; `accuracy`: `[bins]` share of clips that are right. Both are 0 where a bin is empty.
    """

    edges: np.ndarray
    counts: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray

    @property
    def error(self) -> float:
        """Expected calibration error: distance between confidence and accuracy, mean over the clips (Guo et al. 2017)."""
        return float((self.counts * np.abs(self.accuracy - self.confidence)).sum() / self.counts.sum())


def calibration(probs: np.ndarray, targets: np.ndarray, *, num_bins: int) -> Calibration:
    """Of `probs` `[clips, classes]` and `targets` `[clips]`; binned as by Naeini et al. 2015, who use ten, Guo et al. 15."""
    assert num_bins >= 1 and len(targets) >= 1
    top, right = probs.max(axis=1), probs.argmax(axis=1) == targets
    edges = np.linspace(0, 1, num_bins + 1)
    bins = np.searchsorted(edges[1:-1], top, side="left")
    counts = np.bincount(bins, minlength=num_bins)
    filled = np.maximum(counts, 1)
    return Calibration(
        edges=edges,
        counts=counts,
        confidence=np.bincount(bins, weights=top, minlength=num_bins) / filled,
        accuracy=np.bincount(bins, weights=right, minlength=num_bins) / filled,
    )


def fit_temperature(probs: np.ndarray, targets: np.ndarray) -> float:
    """The temperature that makes `probs` `[clips, classes]` of held-out clips most likely for `targets` `[clips]`, within
    TEMPERATURES (Guo et al. 2017): logits divided by it give the calibrated probabilities. One clip in so many more is
    taken to be wrong (Platt 1999): a few clips that are all right are no reason to be sure."""
    from scipy.optimize import minimize_scalar

    doubt = 1 / (len(targets) + 2)
    logits = np.log(np.maximum(probs, np.finfo(np.float64).tiny))

    def loss(log_temperature: float) -> float:
        scaled = logits / np.exp(log_temperature)
        own = scaled[np.arange(len(targets)), targets]
        highest = scaled.max(axis=1)
        expected = (1 - doubt) * own + doubt * scaled.mean(axis=1)
        return float((highest + np.log(np.exp(scaled - highest[:, None]).sum(axis=1)) - expected).mean())

    low, high = np.log(TEMPERATURES).tolist()
    return float(np.exp(minimize_scalar(loss, bounds=(low, high), method="bounded").x))


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassRanking:
    """How the probability of one class, `target`, orders all clips: its own among those of the other classes.

    `hits` and `misses`: `[thresholds]` int64, own and other clips at or above each probability that occurs, from the highest
    to the lowest.
    """

    target: int
    hits: np.ndarray
    misses: np.ndarray

    @property
    def num_clips(self) -> int:
        """The class's own clips, at least one."""
        return int(self.hits[-1])

    @property
    def precision(self) -> np.ndarray:
        """Share of own clips among those at or above each threshold, `[thresholds]`."""
        return self.hits / (self.hits + self.misses)

    @property
    def recall(self) -> np.ndarray:
        """Share of the own clips that are at or above each threshold, `[thresholds]`, from low to 1."""
        return self.hits / self.num_clips

    @property
    def average_precision(self) -> float:
        """Area under the precision-recall curve, by steps: straight lines between its points would promise too much
        (Davis and Goadrich 2006)."""
        return float((np.diff(self.recall, prepend=0) * self.precision).sum())

    @property
    def auc(self) -> float | None:
        """Area under the ROC curve: the chance that an own clip has a higher probability than another, where a tie counts
        half (Fawcett 2006). None where there is no other clip."""
        if not self.misses[-1]:
            return None
        hits = np.concatenate([[0], self.hits])
        area = (np.diff(self.misses, prepend=0) * (hits[1:] + hits[:-1]) / 2).sum()
        return float(area / (self.num_clips * self.misses[-1]))

    def precision_at(self, recalls: np.ndarray) -> np.ndarray:
        """Precision at the highest threshold that reaches each of the recalls, `[recalls]`, all within 0 to 1."""
        return self.precision[np.searchsorted(self.recall, recalls, side="left")]


def rank(of_class: np.ndarray, is_own: np.ndarray, *, target: int) -> ClassRanking:
    """From the probability of the class `[clips]` and whether a clip is its own `[clips]`, which one must be at least."""
    assert is_own.any()
    order = np.argsort(-of_class, kind="stable")
    last_of_ties = np.flatnonzero(np.diff(of_class[order], append=-np.inf))
    hits = np.cumsum(is_own[order])[last_of_ties]
    return ClassRanking(target=target, hits=hits, misses=last_of_ties + 1 - hits)


def rankings(probs: np.ndarray, targets: np.ndarray) -> tuple[ClassRanking, ...]:
    """Of `probs` `[clips, classes]` and `targets` `[clips]`, for every class that occurs; absent ones are left out."""
    return tuple(rank(probs[:, target], targets == target, target=int(target)) for target in np.unique(targets))


def macro(values: Iterable[float | None]) -> float | None:
    """Mean of those that are defined; None where none is."""
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None
