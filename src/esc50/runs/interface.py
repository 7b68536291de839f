"""The project from Python: train a run, list clips."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esc50.assembly.data import build_clips
from esc50.assembly.restore import load
from esc50.config.composing import compose
from esc50.config.door import check
from esc50.data.clip import Clip
from esc50.inference.predictor import Predictor
from esc50.results.predictions import Predictions, read_predictions
from esc50.results.record import read_metrics
from esc50.results.runs import PREDICTIONS


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A finished run: its `folder`, what metrics.json says (accuracies as fractions), and the `predictions` of its test, a
    table with a row for every clip, None where nothing was tested (split=all)."""

    folder: Path
    metrics: Mapping[str, Any]
    predictions: Predictions | None

    def predictor(self, *, accelerator: str = "auto") -> Predictor:
        """The tested model, to label recordings with."""
        return load(self.folder, accelerator=accelerator)

    def __repr__(self) -> str:
        accuracy = self.metrics["test_accuracy"]
        score = "nothing tested" if accuracy is None else f"test accuracy {accuracy:.4f} on {self.metrics['clips']} clips"
        return f"<Run {self.folder}: {score}>"


def read_run(folder: str | Path) -> Run:
    """The run that was left in `folder`. Raises DataError where none is finished there."""
    folder = Path(folder)
    path = folder / PREDICTIONS
    return Run(folder=folder, metrics=read_metrics(folder), predictions=read_predictions(path) if path.is_file() else None)


def train(overrides: Sequence[str] = (), *, folder: str | Path | None = None, config_dir: str | Path | None = None) -> Run:
    """Train and test one run with the settings of `esc50 train`.

    `folder`: where its record goes, by default one of its own below `outputs/train`; `config_dir`: a folder with options of
    one's own. Raises ConfigError for settings that cannot be, DataError for data that cannot be used, TrainingError where
    training breaks.
    """
    from esc50.runs.train import train as train_run

    cfg = compose(overrides, config_dir=config_dir)
    check(cfg)
    if folder is None:
        folder = Path("outputs") / "train" / datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S-%f")
    Path(folder).mkdir(parents=True, exist_ok=True)
    train_run(cfg, Path(folder))
    return read_run(folder)


def clips(data: str = "esc50", *, root: str | Path | None = None, overrides: Sequence[str] = ()) -> tuple[Clip, ...]:
    """All clips of a data set, an option of `conf/data`, fetched or generated first where that is its way; `root`: where it
    lies. Raises DataError where it is not there and cannot be had."""
    cfg = compose([f"data={data}", *overrides])
    if root is not None:
        cfg.data.root = str(root)
    check(cfg)
    return build_clips(cfg)
