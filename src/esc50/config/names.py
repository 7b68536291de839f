"""What a run and its folder are called, and what Hydra says of both."""

import hashlib
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from esc50.config.plain import plain

# Overrides that the name of a run does not tell: where things lie, and how the sweep is run.
SILENT = ("hydra", "sweep=", "paths.", "watch")
LONGEST_NAME = 80


def run_name(overrides: Sequence[str]) -> str:
    """A folder name for a run of a sweep: what was asked for, in readable form, and a digest that keeps two apart. What has
    no effect on the result is left out, so that a repeated command gives the same name."""
    asked = [override.lstrip("+~") for override in overrides if not override.lstrip("+~").startswith(SILENT)]
    asked.sort(key=lambda override: (not override.startswith(("fold=", "seed=")), "." in override.partition("=")[0], override))
    digest = hashlib.sha256("\n".join(asked).encode()).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9.-]+", "_", "-".join(override.replace("=", "_") for override in asked)).strip("_-.")
    return f"{readable[:LONGEST_NAME]}-{digest}" if readable else digest


# Known to conf/sweep from the moment that anything of ours composes a configuration, in a launcher's processes, too.
OmegaConf.register_new_resolver("run_name", run_name, replace=True)


def run_folder() -> Path:
    """The folder that Hydra gave to this run."""
    return Path(HydraConfig.get().runtime.output_dir)


def sweep_folder() -> Path | None:
    """The folder of the sweep that this run belongs to, None outside a sweep."""
    hydra_config = HydraConfig.get()
    return Path(hydra_config.sweep.dir) if hydra_config.mode == RunMode.MULTIRUN else None


def jobs_at_once() -> int:
    """Runs of this sweep that the launcher starts at the same time on this machine."""
    num_jobs = HydraConfig.get().launcher.get("n_jobs", 1)  # joblib's; -1 is one a core
    return num_jobs if num_jobs > 0 else os.cpu_count() or 1


def job_logging() -> dict[str, Any]:
    """How this run logs, as `logging.config.dictConfig` takes it."""
    return plain(cast(DictConfig, HydraConfig.get().job_logging), resolve=True)  # Hydra declares a dict


def chosen(group: str) -> str:
    """The option of a config group that this run was started with."""
    return HydraConfig.get().runtime.choices[group]


def typed() -> str:
    """The command of this process as it could be typed again."""
    program = Path(sys.argv[0])
    return shlex.join([*(["python", sys.argv[0]] if program.suffix == ".py" else [program.name]), *sys.argv[1:]])
