"""A labelled recording, and what a list of them is called by."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Clip:
    """One labelled recording.

    `filename` identifies the clip within its data set (relative to the folder that holds the audio, with forward
    slashes); `path` is where it lies now. `target` runs from 0 to classes - 1, `fold` from 1 to 5. `source` is the
    recording that the clip was cut from, `take` tells clips of one source apart.
    """

    filename: str
    path: Path
    target: int
    category: str
    fold: int
    source: str
    take: str = "A"
    esc10: bool = False


def class_names(clips: Sequence[Clip]) -> tuple[str, ...]:
    """Category names in the order of their targets; targets must be contiguous from 0."""
    names = {clip.target: clip.category for clip in clips}
    assert sorted(names) == list(range(len(names))), f"targets are not contiguous: {sorted(names)}"
    return tuple(names[target] for target in range(len(names)))
