"""What a synthetic data set consists of: its parameters, its clips and its table."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from esc50.data.folds import NUM_FOLDS
from esc50.data.synthetic_sounds import LOWEST_SAMPLE_RATE, PATTERNS
from esc50.data.tables import COLUMNS
from esc50.errors import ConfigError

VERSION = 1  # raise it when the sounds change: folders written before are then written anew
TAKES = (2, 1, 1)  # takes a source, in turn: like ESC-50, most sources give one clip
FIRST_SOURCE = 100_000
SHORTEST_SECONDS = 0.25


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """What shapes a set; `version` is that of the sounds."""

    num_classes: int
    num_clips: int
    seconds: float
    sample_rate: int  # Hz
    seed: int
    version: int = VERSION

    @property
    def num_samples(self) -> int:
        return round(self.seconds * self.sample_rate)


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A clip that is to be written."""

    fold: int
    source: int
    take: str
    target: int

    @property
    def filename(self) -> str:
        return f"{self.fold}-{self.source}-{self.take}-{self.target}.wav"


def check(parameters: Parameters) -> None:
    """Raise ConfigError for parameters that make no set."""
    p, problems = parameters, []
    if not 2 <= p.num_classes <= len(PATTERNS):
        problems.append(f"data.num_classes is {p.num_classes}, it should be 2 to {len(PATTERNS)}")
    elif p.num_clips < 1 or p.num_clips % (NUM_FOLDS * p.num_classes):
        step = NUM_FOLDS * p.num_classes
        problems.append(
            f"data.num_clips is {p.num_clips}, it should be a multiple of {step} ({NUM_FOLDS} folds x"
            f" {p.num_classes} classes), such as {max(1, round(p.num_clips / step)) * step}"
        )
    if not SHORTEST_SECONDS <= p.seconds < float("inf"):
        problems.append(f"data.seconds is {p.seconds}, it should be at least {SHORTEST_SECONDS}")
    if p.sample_rate < LOWEST_SAMPLE_RATE:
        problems.append(f"data.sample_rate is {p.sample_rate} Hz, it should be at least {LOWEST_SAMPLE_RATE}")
    if p.seed < 0:
        problems.append(f"data.seed is {p.seed}, it should be 0 or more")
    if problems:
        raise ConfigError("; ".join(problems))


def plan(parameters: Parameters) -> list[Planned]:
    """All clips of a set: every fold has equally many of each class, takes of one source lie in one fold."""
    planned, source = [], FIRST_SOURCE
    for fold in range(1, NUM_FOLDS + 1):
        for target in range(parameters.num_classes):
            left, turn = parameters.num_clips // (NUM_FOLDS * parameters.num_classes), 0
            while left:
                num_takes = min(left, TAKES[turn % len(TAKES)])
                planned += [Planned(fold=fold, source=source, take=take, target=target) for take in "ABC"[:num_takes]]
                left, turn, source = left - num_takes, turn + 1, source + 1
    return planned


def table(planned: Sequence[Planned], num_classes: int) -> str:
    """The metadata table of these clips, in ESC-50's columns."""
    names, text = list(PATTERNS), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(
        (clip.filename, clip.fold, clip.target, names[clip.target], clip.target < num_classes / 2, clip.source, clip.take)
        for clip in planned
    )
    return text.getvalue()
