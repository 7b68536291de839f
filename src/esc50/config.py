"""The configuration's door: every problem is reported at once, before anything heavy is imported."""

import contextlib
import difflib
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from esc50.errors import ConfigError, Esc50Error

# What the YAML of a component says about it and its constructor does not take.
FACTS = {
    "data": ("creates", "balance"),
    "model": ("input", "normalize", "precision"),
    "optimizer": ("lr_ratio",),
}
SPLITS_WITHOUT_VALIDATION = ("official", "all")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a value must be: a `kind` within `low`..`high` or one of `choices`; null where `optional`."""

    kind: type = str
    low: float = -math.inf
    high: float = math.inf
    above: float = -math.inf
    choices: tuple[str, ...] = ()
    optional: bool = False

    def problem(self, value: Any) -> str | None:
        """Why `value` is not acceptable, as "wanted ...", or None."""
        if value is None:
            return None if self.optional else f"wanted {self.wanted()}"
        number = self.kind in (int, float)
        right = (isinstance(value, int | float) if self.kind is float else isinstance(value, self.kind))
        if not right or (number and isinstance(value, bool)):
            return f"wanted {self.wanted()}"
        if number and not (math.isfinite(value) and self.low <= value <= self.high and value > self.above):
            return f"wanted {self.wanted()}"
        if self.choices and value not in self.choices:
            near = difflib.get_close_matches(str(value), self.choices, n=1)
            return f"wanted {self.wanted()}" + (f"; did you mean {near[0]}?" if near else "")
        return None

    def wanted(self) -> str:
        if self.choices:
            text = "one of " + ", ".join(self.choices)
        else:
            text = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", dict: "a mapping",
                    list: "a list"}[self.kind]
            if math.isfinite(self.low) and math.isfinite(self.high):
                text += f" from {self.low:g} to {self.high:g}"
            elif math.isfinite(self.low):
                text += f" of {self.low:g} or more"
            elif math.isfinite(self.above):
                text += f" above {self.above:g}"
        return text + (" or null" if self.optional else "")


def _int(low: float = -math.inf, high: float = math.inf, **more) -> Rule:
    return Rule(kind=int, low=low, high=high, **more)


def _real(low: float = -math.inf, high: float = math.inf, **more) -> Rule:
    return Rule(kind=float, low=low, high=high, **more)


def _one_of(*choices: str, **more) -> Rule:
    return Rule(choices=choices, **more)


YES_NO = Rule(kind=bool)
POSITIVE = _real(above=0)

# Keys as patterns; a key that the chosen options do not have is not asked for.
RULES = {
    "fold": _int(1, 5), "seed": _int(0, 2**31 - 1), "resume": Rule(optional=True),
    "checkpoint.monitor": _one_of("val_accuracy", "val_loss", "val_top5", "val_macro_f1"),
    "checkpoint.save_top_k": _int(1), "early_stopping.patience": _int(1, optional=True),
    "loader.batch_size": _int(1), "loader.num_workers": _int(0), "loader.memory_limit_gb": _real(0),
    "paths.*": Rule(),
    "data.root": Rule(), "data.balance": _one_of("none", "oversample"), "data.seed": _int(0),
    "data.num_classes": _int(2), "data.num_clips": _int(1), "data.seconds": POSITIVE, "data.sample_rate": _int(1000),
    "data.source_pattern": Rule(), "data.folds_csv": Rule(optional=True),
    "split.protocol": _one_of("holdout", "official", "all"),
    "features.kind": _one_of("mel_png", "waveform", "logmel"), "features.sample_rate": _int(1000),
    "features.seconds": POSITIVE, "features.pad": _one_of("zero", "repeat"), "features.n_fft": _int(16),
    "features.win_length": _int(1), "features.hop_length": _int(1), "features.n_mels": _int(1),
    "features.f_min": _real(0), "features.f_max": POSITIVE, "features.db_min": _real(), "features.db_max": _real(),
    "features.reference": _one_of("full_scale", "clip"), "features.colormap": Rule(optional=True),
    "features.normalize": _one_of("imagenet", "train", "none"), "features.read": _one_of("store", "compute", "lru"),
    "features.cache_size": _int(1),
    "model.precision": _one_of("auto", "float32", "bfloat16"), "model.dropout": _real(0, 1),
    "model.activation": _one_of("relu", "leaky_relu"), "model.hidden": _int(1, optional=True), "model.name": Rule(),
    "model.weights": Rule(optional=True), "model.channels.*": _int(1),
    "augment.*.probability": _real(0, 1), "augment.*.fill": _one_of("mean", "floor"),
    "augment.*.max_width": _int(0), "augment.*.num_masks": _int(0), "augment.*.alpha": _real(0),
    "augment.*.max_fraction": _real(0, 1), "augment.*.W": _int(0), "augment.*.F": _int(0), "augment.*.m_F": _int(0),
    "augment.*.T": _int(0), "augment.*.m_T": _int(0), "augment.*.p": _real(0, 1, above=0),
    "augment.*_rate": POSITIVE, "augment.*_db": _real(), "augment.*_seconds": _real(0),
    "optimizer.lr": POSITIVE, "optimizer.weight_decay": _real(0), "optimizer.lr_ratio.*": _real(0),
    "schedule.warmup": _real(0, 0.99), "schedule.start": _real(0, 1), "schedule.final": _real(0, 1),
    "trainer.max_epochs": _int(1), "trainer.precision": _one_of("auto", "float32", "bfloat16"),
    "trainer.devices": _int(1), "trainer.accelerator": Rule(), "trainer.gradient_clip": _real(above=0, optional=True),
    "trainer.accumulate": _int(1), "trainer.freeze_epochs": _int(0), "trainer.label_smoothing": _real(0, 0.99),
    "trainer.channels_last": YES_NO, "trainer.compile": YES_NO, "trainer.deterministic": YES_NO,
}


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


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if children is None:
        yield key, value
    else:
        for name, child in children:
            yield from _leaves(child, f"{key}.{name}" if key else str(name))


def _values(values: dict) -> list[str]:
    problems = []
    for key, value in _leaves(values, ""):
        if value == "???":
            problems.append(f"{key} needs a value; write {key}=...")
            continue
        for pattern, rule in RULES.items():
            if fnmatchcase(key, pattern):
                problem = rule.problem(value)
                if problem:
                    problems.append(f"{key}={'null' if value is None else value}: {problem}")
                break
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
    for slot in ("waveform", "spectrogram"):
        parts = values["augment"].get(slot) or {}
        if parts and slot not in features["stages"]:
            problems.append(f"augment.{slot} has {', '.join(parts)}, but features={features['kind']} has no {slot} to work"
                            " on; choose other features or another augment")
    if len(values["augment"].get("mix") or {}) > 1:
        problems.append(f"augment.mix takes one way of mixing, not {len(values['augment']['mix'])}")
    if "n_mels" in features:
        sizes = {"FrequencyMask": ("max_width", features["n_mels"], "mel bands"),
                 "TimeMask": ("max_width", num_frames(features), "frames")}
        for name, part in (values["augment"].get("spectrogram") or {}).items():
            kind = str((part or {}).get("_target_", "")).rpartition(".")[2]
            limits = [sizes[kind]] if kind in sizes else []
            if kind == "SpecAugment":
                limits = [("F", features["n_mels"], "mel bands"), ("T", num_frames(features), "frames")]
            problems += [f"augment.spectrogram.{name}.{key}={part[key]}: wider than the image, {size} {unit}"
                         for key, size, unit in limits if part[key] > size]
    for slot in ("waveform", "spectrogram"):
        for name, part in (values["augment"].get(slot) or {}).items():
            problems += [f"augment.{slot}.{name}.{key}={part[key]}: wanted no more than max_{key[4:]}={part['max_' + key[4:]]}"
                         for key in part if key.startswith("min_") and part[key] > part.get("max_" + key[4:], math.inf)]
    return problems


def _data(values: dict) -> list[str]:
    data, problems = values["data"], []
    root = Path(data["root"])
    if not root.is_dir() and not (data.get("creates") and Path(data["creates"]) == root):
        problems.append(f"data.root={data['root']}: no such folder")
    store = Path(values["paths"]["store"]).resolve()
    if store.is_relative_to(root.resolve()):
        problems.append(f"paths.store={values['paths']['store']}: lies inside data.root={data['root']}, where nothing derived"
                        " may be written; choose another paths.store")
    if values["resume"] is not None and not Path(values["resume"]).exists():
        problems.append(f"resume={values['resume']}: no such run folder or checkpoint")
    return problems


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
    """Inside, a person's mistake ends the program with its message on stderr and exit status (2, or 1 from within training), no traceback."""
    try:
        yield
    except Esc50Error as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_status)


def run_folder() -> Path:
    """The folder that Hydra gave to this run."""
    from hydra.core.hydra_config import HydraConfig

    return Path(HydraConfig.get().runtime.output_dir)
