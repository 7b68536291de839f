"""Types of settings with their limits, for sections of the configuration and for constructors that it names.

A constructor that says `probability: Probability` has its settings checked before torch is imported; the types are plain
numbers and texts to everybody else.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

OWN_WORDS = "own_words"  # the type of an error whose message is to be shown as it is


@dataclass(frozen=True)
class Wanted:
    """Says in words what is wanted, where the type alone does not."""

    words: str


def _exists(path: str) -> str:
    if not Path(path).exists():
        raise PydanticCustomError(OWN_WORDS, "no such file or folder")
    return path


def _exists_or_stdin(path: str) -> str:
    return path if path == "-" else _exists(path)


def _as_text(value: object) -> object:
    """A name such as 2024 is read as a number."""
    return str(value) if type(value) in (int, float, bool) else value


Probability = Annotated[float, Field(ge=0, le=1, description="share of the examples that are changed")]
Share = Annotated[float, Field(ge=0, le=1)]
PositiveShare = Annotated[float, Field(gt=0, le=1)]
Warmup = Annotated[float, Field(ge=0, le=0.99)]
Semitones = Annotated[float, Field(ge=0, le=24)]
NonNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
PositiveInt = Annotated[int, Field(ge=1)]
Sizes = Annotated[list[PositiveInt], Field(min_length=1)]
FewClips = Annotated[int, Field(ge=1, le=20)]
Switch = bool
Name = Annotated[str, BeforeValidator(_as_text), Wanted("a name")]
Stage = Literal["waveform", "spectrogram"]
ForClass = Literal["predicted", "truth"]
Fill = Literal["mean", "floor"]
Keys = Annotated[dict, Wanted("keys below it")]
CheckpointPath = Annotated[str, BeforeValidator(_as_text), AfterValidator(_exists), Wanted("a run folder or checkpoint file")]
FolderPath = Annotated[str, BeforeValidator(_as_text), AfterValidator(_exists), Wanted("a folder")]
SoundPath = Annotated[str, BeforeValidator(_as_text), AfterValidator(_exists), Wanted("an audio file or a folder of them")]
SoundInput = Annotated[
    str,
    BeforeValidator(_as_text),
    AfterValidator(_exists_or_stdin),
    Wanted("an audio file, a folder of them, or - for a recording on stdin"),
]
