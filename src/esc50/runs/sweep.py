"""One run of a sweep: trained where it is not done yet, and reported where it fails, so that the others go on."""

import logging
import math
from pathlib import Path

from omegaconf import DictConfig

from esc50.config.door import check, check_search
from esc50.config.names import jobs_at_once
from esc50.errors import Esc50Error
from esc50.files import write_atomically
from esc50.training.threads import divide_cores

log = logging.getLogger(__name__)

FAILURE = "failure.txt"  # what went wrong, in the folder of a run that failed


def train_one(cfg: DictConfig, folder: Path, *, sweep: Path) -> float | None:
    """Train as `resuming.train_or_skip` does, in `folder` of the sweep in the folder `sweep`.

    Raises ConfigError where no run of a search could ever succeed. What else fails is logged, noted in failure.txt and returned
    as NaN, which lets the others go on.
    """
    check_search(cfg)
    num_jobs = jobs_at_once()
    divide_cores(num_jobs)
    if num_jobs > 1 and cfg.loader.num_workers > 0:
        log.info("loader.num_workers=0: a process of the joblib launcher may not start others")
        cfg.loader.num_workers = 0
    folder.mkdir(parents=True, exist_ok=True)
    failure = folder / FAILURE
    failure.unlink(missing_ok=True)
    try:
        check(cfg)
        return _train(cfg, folder, sweep)
    except (Esc50Error, OSError) as error:
        log.error("this run failed: %s", error)
        reason = str(error)
    except Exception as error:
        log.exception("this run failed")
        reason = f"{type(error).__name__}: {error}"
    with write_atomically(failure) as temporary:
        temporary.write_text(reason.strip() + "\n", encoding="utf-8")
    return math.nan


def _train(cfg: DictConfig, folder: Path, sweep: Path) -> float | None:
    if cfg.trainer.devices > 1:
        from esc50.runs.processes import train_in_own_processes

        return train_in_own_processes(cfg, folder, sweep)
    from esc50.runs.resume import train_or_skip

    return train_or_skip(cfg, folder, sweep)
