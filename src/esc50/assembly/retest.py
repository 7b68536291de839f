"""From a checkpoint alone to its test: the task with its weights, and only the calls that a test needs."""

from collections.abc import Mapping
from typing import Any

import lightning as L
from omegaconf import OmegaConf

from esc50.assembly.data import reads_clips
from esc50.assembly.restore import check_named, readable, restored
from esc50.assembly.task import build_task
from esc50.config import schema
from esc50.config.plain import plain
from esc50.config.problems import component_problems
from esc50.training.task import Classifier


def restore_task(stored: Mapping[str, Any]) -> Classifier:
    """The task of a loaded checkpoint, with its weights, to evaluate with. Raises DataError as `restored`."""
    return restored(stored, build_task)


def check_calls(stored: Mapping[str, Any]) -> None:
    """Raise DataError where a loaded checkpoint names as its data anything but a reader of clips, or as a panel anything but a
    callback, or gives them arguments that they do not take: the file may be anybody's, or of another version, and what it
    names there is called to repeat the test."""
    with readable(stored):
        config = plain(OmegaConf.create(stored["esc50"]["config"]), resolve=True)
        panels = {name: panel for name, panel in (config["watch"] or {}).items() if panel}
        check_named(config["data"], "its data", reads_clips)
        for panel in panels.values():
            check_named(panel, "a panel", L.Callback)
        wrong = dict(component_problems(schema.Data, config["data"], key="data"))
        for name, panel in panels.items():
            wrong |= component_problems(schema.ComponentSection, panel, key=f"watch.{name}")
        if wrong:
            raise ValueError(next(iter(wrong.values())))
