"""The keys of the commands that take a checkpoint, or finished runs, instead of a run's configuration."""

from typing import Annotated, Any, Literal

from pydantic import Field

from esc50.config.kinds import (
    CheckpointPath,
    FolderPath,
    Name,
    Positive,
    PositiveInt,
    Probability,
    SoundInput,
    SoundPath,
    Switch,
    Wanted,
)
from esc50.config.schema import Section

Places = Annotated[Any, Wanted("a folder of runs, a list of them, or a pattern")]


class _OfCheckpoint(Section):
    checkpoint: CheckpointPath = Field(description="a run folder or a checkpoint file")


class DataRoot(Section):
    """Where data lies now."""

    root: FolderPath | None = Field(description="where the data lies now, if not where it lay in training")


class Evaluate(_OfCheckpoint):
    """Repeat the test of a checkpoint."""

    data: DataRoot = Field(description="the data that it was trained on")
    shifts: Annotated[int, Field(ge=1, le=100)] = Field(
        description="average over so many circular shifts in time (test-time augmentation)"
    )


class _Windows(_OfCheckpoint):
    input: SoundInput = Field(
        description="an audio file, a folder (every audio file in it and below), or - for a recording on stdin"
    )
    window: Positive | None = Field(
        description="seconds of long recordings that are looked at at once; null for the length that was learnt"
    )
    hop: Positive | None = Field(description="seconds from one window to the next; null for windows that touch")


class Explain(_Windows):
    """Draw where a model looks."""

    class_name: Name | None = Field(
        alias="class", description="the class whose map is drawn; null for the predicted one, of each window"
    )
    layer: Name | None = Field(
        description="a layer's name, such as blocks.2; null for the last one with places in time and frequency"
    )
    rows: Annotated[int, Field(ge=1, le=20)] = Field(
        description="most windows of a long recording in its picture: those with the highest probabilities"
    )


class _Thresholds(Section):
    min_probability: Probability | None = Field(
        description="a best probability below it is answered by `unknown`; 0 always names a class"
    )
    max_entropy: Probability | None = Field(description="so is an entropy above it, as a share of its greatest value")


class Predict(_Thresholds, _Windows):
    """Label recordings."""

    format: Literal["table", "csv", "jsonl"] = Field(description="of the last two stdout holds nothing but rows")
    top: PositiveInt = Field(description="most probable classes to name")
    batch_size: PositiveInt = Field(description="windows computed at once; of no influence on the answers")


class Export(_OfCheckpoint):
    """Write a model for other programs."""

    format: Literal["onnx", "torch"] = Field(
        description="onnx: for any runtime; torch: torch.export, for programs with torch alone"
    )
    quantize: Switch = Field(description="beside model.onnx write model_int8.onnx, with eight bits")
    input: SoundPath | None = Field(description="recordings to compare on; null for the test clips of the training's data")
    data: DataRoot = Field(description="that data")


class Serve(_Thresholds, _OfCheckpoint):
    """Show a model as a page in the browser."""

    host: str = Field(description="127.0.0.1 for this machine alone; 0.0.0.0 lets others in, who are not asked for a password")
    port: Annotated[int, Field(ge=1, le=65535)] = Field(description="the port to listen at")
    max_megabytes: Positive = Field(description="largest upload, in MB")
    max_seconds: Positive = Field(description="longest recording, in seconds")


class Leaderboard(Section):
    """One table of what systems score."""

    runs: Places = Field(description="a run, a sweep, any folder with runs below it, a list of these, or a pattern")


class Compare(Section):
    """Two systems on the same clips."""

    a: Places = Field(description="the runs of one system: a run, a sweep, a list or a pattern")
    b: Places = Field(description="the same for the other system")


class Ensemble(Section):
    """Average the probabilities of finished runs."""

    runs: Places = Field(description="a list of members, each a run or a sweep of one system")
    weights: Annotated[Any, Wanted("a list of numbers above 0")] | None = Field(description="one a member; null for equal ones")


COMMANDS: dict[str, type[Section]] = {
    "evaluate": Evaluate,
    "explain": Explain,
    "predict": Predict,
    "export": Export,
    "serve": Serve,
    "leaderboard": Leaderboard,
    "compare": Compare,
    "ensemble": Ensemble,
}
