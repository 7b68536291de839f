"""A run in a folder of its own: left alone where it is done, gone on with where it was interrupted."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from omegaconf import DictConfig, OmegaConf

from esc50.config.plain import plain
from esc50.errors import ConfigError
from esc50.results.record import METRICS, read_metrics
from esc50.results.runs import CONFIG, WITHOUT_EFFECT, differing_keys
from esc50.runs import preparation
from esc50.runs import train as run
from esc50.training.quiet import is_first_process

log = logging.getLogger(__name__)

# Two runs of a sweep on data in different places are two runs.
FREE_KEYS = tuple(key for key in WITHOUT_EFFECT if key != "data.root")
LOCK = ".lock"  # held by the process that trains in the folder; the system lets go of it however that process ends


def train_or_skip(cfg: DictConfig, folder: Path, sweep: Path) -> float | None:
    """Train as `run.train` does, in `folder`; returns the validation accuracy.

    A run with this configuration that is finished, anywhere below `sweep`, is not repeated; one that was interrupted in
    `folder` is resumed; one that another process is at (a job that outlived a killed sweep) is waited for. Raises ConfigError
    where `folder` holds a finished run with another configuration.
    """
    with _alone_in(folder):
        config = plain(cfg, resolve=True)
        config["trainer"]["precision"], _ = preparation.precision_of(cfg)
        if (done := finished_twin(config, sweep)) is not None:
            log.info("this run is finished, in %s", done)
            return read_metrics(done)["val_accuracy"]
        if (folder / METRICS).is_file():
            keys = differing_keys(config, _config_of(folder), free=FREE_KEYS)
            raise ConfigError(f"{folder} holds a run with another {', '.join(keys)}; choose another hydra.sweep.dir")
        if (folder / "checkpoints" / "last.ckpt").is_file():
            log.info("going on with %s", folder)
            cfg.resume = str(folder)
        return run.train(cfg, folder)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    if not is_first_process():  # one of several that train this run together, for all of which the first holds the lock
        yield
        return
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        log.info("another process trains in %s; waiting for it to end", folder)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def finished_twin(config: Mapping[str, Any], sweep: Path) -> Path | None:
    """The folder of a finished run below `sweep` with the same configuration, None where there is none."""
    finished = sorted(path.parent for path in sweep.glob(f"*/{METRICS}"))
    return next((folder for folder in finished if not differing_keys(config, _config_of(folder), free=FREE_KEYS)), None)


def _config_of(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    return plain(OmegaConf.load(path)) if path.is_file() else {}
