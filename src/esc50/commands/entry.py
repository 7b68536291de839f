"""What every command is: a function of its configuration that ends with a person's line where something is wrong."""

import functools
import sys
from collections.abc import Callable
from typing import Any, Protocol

from omegaconf import DictConfig

from esc50.errors import readable_errors


class Command(Protocol):
    """The function of a command, and the file of `conf/` that is the root of its configuration."""

    config: str

    def __call__(self, cfg: DictConfig) -> Any: ...


def command(*, config: str) -> Callable[[Callable[[DictConfig], Any]], Command]:
    """Make a function a command whose configuration is rooted in `conf/<config>.yaml`. It stays what its module's name finds,
    as launchers that start it in other processes need."""

    def decorate(work: Callable[[DictConfig], Any]) -> Any:
        @functools.wraps(work)
        def main(cfg: DictConfig) -> Any:
            with readable_errors():
                return work(cfg)

        main.config = config  # type: ignore[attr-defined]
        return main

    return decorate


def say(text: str) -> None:
    """Show a command's result on stdout."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
