"""The configuration's door: every problem is reported at once, before anything heavy is imported."""

import contextlib
import errno
import glob
import hashlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from esc50.errors import ConfigError, Esc50Error
from esc50.relations import RELATIONS, Values, files, outside, search
from esc50.rules import SCRIPT_RULES, rule_for

# What the YAML of a component says about it and its constructor does not take.
FACTS = {
    "data": ("creates", "balance"),
    "model": ("input", "normalize", "precision", "gradient_checkpointing"),
    "optimizer": ("lr_ratio",),
}
# What a disk or a person's rights refuse, wherever it is written: theirs to mend.
REFUSALS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.EISDIR}
# Overrides that the name of a run does not tell: where things lie, and how the sweep is run.
SILENT = ("hydra", "sweep=", "paths.", "watch")
LONGEST_NAME = 80
INTERRUPTED, UNREAD = 130, 141  # exit status, as shells know it


def check(cfg: DictConfig) -> None:
    """Raise one ConfigError that lists every problem of `cfg`, each in a plain line."""
    try:
        values = OmegaConf.to_container(cfg, resolve=True)
    except OmegaConfBaseException as error:
        raise ConfigError(f"the configuration does not resolve: {str(error).splitlines()[0]}") from None
    wrong = dict(wrong_values(values))
    of = Values(values, wrong)
    _refuse([*wrong.values(), *(problem for relation in RELATIONS for problem in relation(of)), *_places(of)])


def check_search(cfg: DictConfig) -> None:
    """The same for what a search needs, which no single run of it could put right."""
    _refuse(list(search(Values(OmegaConf.to_container(cfg)))))


def check_data(cfg: DictConfig) -> None:
    """The same for where the data of a checkpoint's configuration lies, and what is derived from it."""
    of = Values(OmegaConf.to_container(cfg, resolve=True))
    _refuse([*files(of), *_places(of)])


def check_script(cfg: DictConfig, script: str) -> None:
    """The same for the few keys of a script that takes a checkpoint, by the script's name."""
    values, problems = Values(OmegaConf.to_container(cfg, resolve=True)), []
    for key, rule in SCRIPT_RULES[script].items():
        value = values[key]
        if value == "???" or (value is None and not rule.optional):
            problems.append(f"{key} needs a value; write {key}={rule.wanted()}")
        elif problem := rule.problem(str(value) if rule.kind is str and type(value) in (int, float, bool) else value):
            problems.append(f"{key}={'null' if value is None else value}: {problem}")
    if script == "export" and values["quantize"] is True and values["format"] == "torch":
        problems.append("quantize=true: eight bits are for format=onnx")
    _refuse(problems)


def places(cfg: DictConfig, key: str) -> list[Path]:
    """The folders that `key` names, one or a list; a pattern such as `outputs/sweep/*seed_1*` names all that match. Raises
    ConfigError where one is missing."""
    value = None if OmegaConf.is_missing(cfg, key) else cfg[key]
    named = [str(one) for one in (value if isinstance(value, ListConfig) else [value]) if one is not None]
    # Path.glob takes no pattern that begins at the root.
    found = [place for one in named for place in sorted(map(Path, glob.glob(one))) or [Path(one)]]  # noqa: PTH207
    if not found:
        raise ConfigError(f"{key} needs a value; write {key}=the folder of a run or a sweep")
    _refuse([f"{key}={place}: no such folder" for place in found if not place.is_dir()])
    return found


def numbers(cfg: DictConfig, key: str, *, count: int) -> list[float]:
    """The weights that `key` lists, equal ones where it is null. Raises ConfigError where they do not fit `count`."""
    if cfg[key] is None:
        return [1.0] * count
    values = list(cfg[key]) if isinstance(cfg[key], ListConfig) else [cfg[key]]
    if len(values) != count or not all(isinstance(value, int | float) and value > 0 for value in values):
        raise ConfigError(f"{key}={cfg[key]}: wanted {count} numbers above 0, one for each member")
    return [float(value) for value in values]


def _refuse(problems: list[str]) -> None:
    if len(problems) == 1:
        raise ConfigError(problems[0])
    if problems:
        raise ConfigError(f"{len(problems)} problems in the configuration:\n  " + "\n  ".join(problems))


def wrong_values(values: dict) -> Iterator[tuple[str, str]]:
    """Each key whose value breaks its rule, with the problem in words."""
    for key, value in nodes(values):
        rule = rule_for(key)
        if value == "???":
            yield key, f"{key} needs a value; write {key}=..."
        elif rule and (problem := rule.problem(value)):
            yield key, f"{key}={'null' if value is None else value}: {problem}"


def nodes(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every key with its value, those that hold other keys too."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        child_key = f"{key}.{name}" if key else str(name)
        yield child_key, child
        yield from nodes(child, child_key)


def _places(of: Values) -> list[str]:
    places = {"paths.store": of["paths.store"]} if of.has("paths.store") else {}
    if HydraConfig.initialized():
        places["hydra.run.dir"] = run_folder()
    return outside(of["data.root"], places) if of.has("data.root") else []


@contextlib.contextmanager
def readable_errors() -> Iterator[None]:
    """Inside, a person's mistake ends the program with its message on stderr and its exit status, without a traceback."""
    try:
        yield
    except Esc50Error as error:
        sys.stderr.write(f"error: {_own_words(error)}\n")
        sys.exit(error.exit_status)
    except BrokenPipeError:  # whoever reads has read enough, as `head` does; nothing more is to be flushed at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(UNREAD)
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        sys.stderr.write(f"error: {error.filename or 'the disk'}: {error.strerror}; make room or rights there, or choose"
                         " another place\n")
        sys.exit(Esc50Error.exit_status)
    except KeyboardInterrupt as interrupt:
        sys.stderr.write(f"interrupted; {interrupt}\n" if str(interrupt) else "interrupted\n")
        sys.exit(INTERRUPTED)


def _own_words(error: Esc50Error) -> str:
    """The message, without the traceback that a loader's worker process wraps around it."""
    text = str(error).strip()
    return text.splitlines()[-1].partition(": ")[2] if "Original Traceback" in text else text


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
    return OmegaConf.to_container(HydraConfig.get().job_logging, resolve=True)


def run_name(overrides: Sequence[str]) -> str:
    """A folder name for a run of a sweep: what was asked for, in readable form, and a digest that keeps two apart. What has
    no effect on the result is left out, so that a repeated command gives the same name."""
    asked = [override.lstrip("+~") for override in overrides if not override.lstrip("+~").startswith(SILENT)]
    asked.sort(key=lambda override: (not override.startswith(("fold=", "seed=")), "." in override.partition("=")[0], override))
    digest = hashlib.sha256("\n".join(asked).encode()).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9.-]+", "_", "-".join(override.replace("=", "_") for override in asked)).strip("_-.")
    return f"{readable[:LONGEST_NAME]}-{digest}" if readable else digest


OmegaConf.register_new_resolver("run_name", run_name, replace=True)


def chosen(group: str) -> str:
    """The option of a config group that this run was started with."""
    return HydraConfig.get().runtime.choices[group]


def run_folder() -> Path:
    """The folder that Hydra gave to this run."""
    return Path(HydraConfig.get().runtime.output_dir)
