"""Train, compare and explain environmental-sound classifiers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from esc50.inference.predictor import Predictor

__all__ = ["load"]


def load(checkpoint: "str | Path", *, accelerator: str = "auto") -> "Predictor":
    """The model of a checkpoint file, or of a run folder the tested one: `load("outputs/train/<time>").predict("dog.wav")`.

    See `esc50.inference.predictor.load`; what it needs is imported now, not with the package.
    """
    from esc50.inference.predictor import load as load_predictor

    return load_predictor(checkpoint, accelerator=accelerator)
