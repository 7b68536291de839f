"""One run of a sweep: left alone where it is done, gone on with where it was interrupted, reported where it fails."""

import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from omegaconf import DictConfig, OmegaConf

from esc50.config import check, check_search, jobs_at_once
from esc50.errors import ConfigError, Esc50Error
from esc50.files import write_atomically
from esc50.results.record import METRICS, read_metrics
from esc50.results.runs import CONFIG, WITHOUT_EFFECT, differing_keys
from esc50.training.threads import divide_cores

log = logging.getLogger(__name__)

# Two runs of a sweep on data in different places are two runs.
FREE_KEYS = tuple(key for key in WITHOUT_EFFECT if key != "data.root")
FAILURE = "failure.txt"  # what went wrong, in the folder of a run that failed
LOCK = ".lock"  # held by the process that trains in the folder; the system lets go of it however that process ends


def train_one(cfg: DictConfig, folder: Path, *, sweep: Path) -> float | None:
    """Train as `run.train` does, in `folder` of the sweep in the folder `sweep`.

    A run with this configuration that is finished, anywhere in the sweep, is not repeated; one that was interrupted in
    `folder` is resumed; one that another process is at (a job that outlived a killed sweep) is waited for. Raises ConfigError
    where no run of a search could ever succeed. What else fails is logged, noted in failure.txt and returned as NaN, which
    lets the others go on.
    """
    check_search(cfg)
    num_jobs = jobs_at_once()
    divide_cores(num_jobs)
    if num_jobs > 1 and cfg.loader.num_workers > 0:
        log.info("loader.num_workers=0: a process of the joblib launcher may not start others")
        cfg.loader.num_workers = 0
    folder.mkdir(parents=True, exist_ok=True)
    with _alone_in(folder):
        return _train_or_report(cfg, folder, sweep)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
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


def _train_or_report(cfg: DictConfig, folder: Path, sweep: Path) -> float | None:
    failure = folder / FAILURE
    failure.unlink(missing_ok=True)
    try:
        check(cfg)
        return _train_or_skip(cfg, folder, sweep)
    except (Esc50Error, OSError) as error:
        log.error("this run failed: %s", error)
        reason = str(error)
    except Exception as error:
        log.exception("this run failed")
        reason = f"{type(error).__name__}: {error}"
    with write_atomically(failure) as temporary:
        temporary.write_text(reason.strip() + "\n", encoding="utf-8")
    return math.nan


def _train_or_skip(cfg: DictConfig, folder: Path, sweep: Path) -> float | None:
    from esc50 import run

    config = OmegaConf.to_container(cfg, resolve=True)
    config["trainer"]["precision"], _ = run.precision_of(cfg)
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


def finished_twin(config: Mapping[str, Any], sweep: Path) -> Path | None:
    """The folder of a finished run below `sweep` with the same configuration, None where there is none."""
    finished = sorted(path.parent for path in sweep.glob(f"*/{METRICS}"))
    return next((folder for folder in finished if not differing_keys(config, _config_of(folder), free=FREE_KEYS)), None)


def _config_of(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    return OmegaConf.to_container(OmegaConf.load(path)) if path.is_file() else {}
