"""The configuration's door: every problem is reported at once, before anything heavy is imported."""

import contextlib
import errno
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from esc50.errors import ConfigError, Esc50Error
from esc50.rules import rule_for

# What the YAML of a component says about it and its constructor does not take.
FACTS = {
    "data": ("creates", "balance"),
    "model": ("input", "normalize", "precision"),
    "optimizer": ("lr_ratio",),
}
SPLITS_WITHOUT_VALIDATION = ("official", "all")
NUM_FOLDS = 5
# What a disk or a person's rights refuse, wherever it is written: theirs to mend.
REFUSALS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.EISDIR}
INTERRUPTED = 130  # exit status, as shells know it


def check(cfg: DictConfig) -> None:
    """Raise one ConfigError that lists every problem of `cfg`, each in a plain line."""
    try:
        values = OmegaConf.to_container(cfg, resolve=True)
    except OmegaConfBaseException as error:
        raise ConfigError(f"the configuration does not resolve: {str(error).splitlines()[0]}") from None
    problems = _values(values)
    wrong = {problem.split(".")[0].split("=")[0] for problem in problems}
    for relations, sections in RELATIONS.items():
        if wrong.isdisjoint(sections):  # relations may take each value for granted
            problems += relations(values)
    if len(problems) == 1:
        raise ConfigError(problems[0])
    if problems:
        raise ConfigError(f"{len(problems)} problems in the configuration:\n  " + "\n  ".join(problems))


def check_evaluate(cfg: DictConfig) -> None:
    """The same for the few keys of scripts/evaluate.py."""
    problems = []
    for key, value in (("checkpoint", cfg.checkpoint if not OmegaConf.is_missing(cfg, "checkpoint") else None),
                       ("data.root", cfg.data.root or ".")):
        if value is None:
            problems.append(f"{key} needs a value; write {key}=a run folder or checkpoint file")
        elif not Path(value).exists():
            problems.append(f"{key}={value}: no such file or folder")
    if problems:
        raise ConfigError("\n  ".join(problems))


def _nodes(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every key with its value, those that hold other keys too."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        child_key = f"{key}.{name}" if key else str(name)
        yield child_key, child
        yield from _nodes(child, child_key)


def _values(values: dict) -> list[str]:
    problems = []
    for key, value in _nodes(values):
        rule = rule_for(key)
        if value == "???":
            problems.append(f"{key} needs a value; write {key}=...")
        elif rule and (problem := rule.problem(value)):
            problems.append(f"{key}={'null' if value is None else value}: {problem}")
    return problems


def num_frames(features: dict) -> int:
    """Frames of a clip of full length."""
    return 1 + round(features["seconds"] * features["sample_rate"]) // features["hop_length"]


def _features(values: dict) -> list[str]:
    features, model, problems = values["features"], values["model"], []
    if features["stages"][-1] != model["input"]:
        problems.append(f"the model takes a {model['input']}, features={features['kind']} gives a {features['stages'][-1]};"
                        f" choose features={'waveform' if model['input'] == 'waveform' else 'mel_png or logmel'}")
    if features["normalize"] == "imagenet" and model["input"] == "waveform":
        problems.append("features.normalize=imagenet is for images; with a waveform choose train or none")
    if "n_mels" not in features:
        return problems
    half = features["sample_rate"] / 2
    if features["f_max"] > half:
        problems.append(f"features.f_max={features['f_max']}: above half the sample rate, {half:g} Hz")
    if features["f_min"] >= features["f_max"]:
        problems.append(f"features.f_min={features['f_min']}: wanted less than features.f_max={features['f_max']}")
    if features["win_length"] > features["n_fft"]:
        problems.append(f"features.win_length={features['win_length']}: longer than features.n_fft={features['n_fft']}")
    if features["db_min"] >= features["db_max"]:
        problems.append(f"features.db_min={features['db_min']}: wanted less than features.db_max={features['db_max']}")
    return problems


def _augment(values: dict) -> list[str]:
    features, problems = values["features"], []
    slots = {slot: {name: part for name, part in (values["augment"].get(slot) or {}).items() if part is not None}
             for slot in ("waveform", "spectrogram", "mix")}  # a part that is null is switched off
    for slot in ("waveform", "spectrogram"):
        parts = slots[slot]
        if parts and slot not in features["stages"]:
            problems.append(f"augment.{slot} has {', '.join(parts)}, but features={features['kind']} has no {slot} to work"
                            " on; choose other features or another augment")
    if len(slots["mix"]) > 1:
        problems.append(f"augment.mix takes one way of mixing, not {len(slots['mix'])}: {', '.join(slots['mix'])}")
    if "n_mels" in features:
        sizes = {"FrequencyMask": ("max_width", features["n_mels"], "mel bands"),
                 "TimeMask": ("max_width", num_frames(features), "frames")}
        for name, part in slots["spectrogram"].items():
            kind = str(part.get("_target_", "")).rpartition(".")[2]
            limits = [sizes[kind]] if kind in sizes else []
            if kind == "SpecAugment":
                limits = [("F", features["n_mels"], "mel bands"), ("T", num_frames(features), "frames")]
            problems += [f"augment.spectrogram.{name}.{key}={part[key]}: wider than the image, {size} {unit}"
                         for key, size, unit in limits if part[key] > size]
    for slot in ("waveform", "spectrogram"):
        for name, part in slots[slot].items():
            pairs = [(key, key.replace("min_", "max_", 1)) for key in part if key.startswith("min_")]
            problems += [f"augment.{slot}.{name}.{low}={part[low]}: wanted no more than {high}={part[high]}"
                         for low, high in pairs if high in part and part[low] > part[high]]
    return problems


def _data(values: dict) -> list[str]:
    data, problems = values["data"], data_problems(values)
    if data.get("folds_csv") is not None and not Path(data["folds_csv"]).is_file():
        problems.append(f"data.folds_csv={data['folds_csv']}: no such file")
    if "source_pattern" in data:
        try:
            re.compile(data["source_pattern"])
        except re.error as error:
            problems.append(f"data.source_pattern={data['source_pattern']}: not a regular expression, {error}")
    if "num_clips" in data and data["num_clips"] % (NUM_FOLDS * data["num_classes"]):
        problems.append(f"data.num_clips={data['num_clips']}: wanted a multiple of {NUM_FOLDS * data['num_classes']},"
                        f" {NUM_FOLDS} folds of {data['num_classes']} classes")
    if values["resume"] is not None and not Path(values["resume"]).exists():
        problems.append(f"resume={values['resume']}: no such run folder or checkpoint")
    return problems


def data_problems(values: dict) -> list[str]:
    """What is wrong with where the data lies, and with where things derived from it would be written."""
    data, store = values["data"], values["paths"]["store"]
    root = Path(data["root"])
    problems = []
    if not root.is_dir() and not (data.get("creates") and Path(data["creates"]) == root):
        problems.append(f"data.root={root}: no such folder")
    places = {"paths.store": store} | ({"hydra.run.dir": run_folder()} if HydraConfig.initialized() else {})
    return problems + [f"{key}={place}: lies inside data.root={root}, where nothing derived may be written; choose another"
                       f" {key}" for key, place in places.items() if Path(place).resolve().is_relative_to(root.resolve())]


def _training(values: dict) -> list[str]:
    protocol, problems = values["split"]["protocol"], []
    if protocol in SPLITS_WITHOUT_VALIDATION and values["early_stopping"]["patience"] is not None:
        problems.append(f"early_stopping.patience={values['early_stopping']['patience']}: split={protocol} has no validation"
                        " clips to stop on; use split=holdout or leave it null")
    if values["trainer"]["freeze_epochs"] >= values["trainer"]["max_epochs"] > 0 and values["trainer"]["freeze_epochs"] > 0:
        problems.append(f"trainer.freeze_epochs={values['trainer']['freeze_epochs']}: the body would never be trained in"
                        f" trainer.max_epochs={values['trainer']['max_epochs']} epochs")
    return problems


RELATIONS = {
    _features: ("features", "model"),
    _augment: ("augment", "features"),
    _data: ("data", "paths", "resume"),
    _training: ("split", "early_stopping", "trainer"),
}


@contextlib.contextmanager
def readable_errors() -> Iterator[None]:
    """Inside, a person's mistake ends the program with its message on stderr and its exit status, without a traceback."""
    try:
        yield
    except Esc50Error as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_status)
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        sys.stderr.write(f"error: {error.filename or 'the disk'}: {error.strerror}; make room or rights there, or choose"
                         " another place\n")
        sys.exit(Esc50Error.exit_status)
    except KeyboardInterrupt as interrupt:
        sys.stderr.write(f"interrupted; {interrupt}\n" if str(interrupt) else "interrupted\n")
        sys.exit(INTERRUPTED)


def run_folder() -> Path:
    """The folder that Hydra gave to this run."""
    return Path(HydraConfig.get().runtime.output_dir)
