"""Train, compare and explain environmental-sound classifiers.

import esc50

run = esc50.train(["experiment=quickstart"])
run.metrics["test_accuracy"], run.predictions.rows()
run.predictor().predict("dog.wav").label

esc50.load("outputs/train/<time>").predict("dog.wav")
esc50.clips("esc10", root="my/ESC-10")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from esc50.assembly.restore import load
    from esc50.runs.interface import Run, clips, read_run, train

__all__ = ["Run", "clips", "load", "read_run", "train"]


def __getattr__(name: str) -> Any:
    """What is asked for is imported then, not with the package: torch takes seconds, and commands that do without should."""
    if name == "load":
        from esc50.assembly.restore import load

        return load
    if name in __all__:
        from esc50.runs import interface

        return getattr(interface, name)
    raise AttributeError(f"module 'esc50' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
