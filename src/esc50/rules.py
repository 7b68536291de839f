"""What each single value of the configuration must be."""

import difflib
import math
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a value must be: a `kind` within `low`..`high` or one of `choices`; null where `optional`. A `Path` must exist,
    unless it is one of the `choices`; `meaning` says what is wanted where the kind does not."""

    kind: type = str
    low: float = -math.inf
    high: float = math.inf
    above: float = -math.inf
    choices: tuple[str, ...] = ()
    optional: bool = False
    meaning: str = ""

    def problem(self, value: Any) -> str | None:
        """Why `value` is not acceptable, as "wanted ...", or None."""
        if value is None:
            return None if self.optional else f"wanted {self.wanted()}"
        if self.kind is Path:
            plain = isinstance(value, str | int | float)
            found = plain and (str(value) in self.choices or Path(str(value)).exists())
            return None if found else "no such file or folder" if plain else f"wanted {self.wanted()}"
        number = self.kind in (int, float)
        right = isinstance(value, int | float) if self.kind is float else isinstance(value, self.kind)
        if not right or (number and isinstance(value, bool)):
            return f"wanted {self.wanted()}"
        if number and not (math.isfinite(value) and self.low <= value <= self.high and value > self.above):
            return f"wanted {self.wanted()}"
        if self.kind is list and not value:
            return f"wanted {self.wanted()}"
        if self.choices and value not in self.choices:
            near = difflib.get_close_matches(str(value), self.choices, n=1)
            return f"wanted {self.wanted()}" + (f"; did you mean {near[0]}?" if near else "")
        return None

    def wanted(self) -> str:
        if self.meaning:
            text = self.meaning
        elif self.choices:
            text = "one of " + ", ".join(self.choices)
        else:
            text = {int: "a whole number", float: "a number", bool: "true or false", str: "a text",
                    dict: "keys below it", list: "a list of one or more"}[self.kind]
            digits = ".0f" if self.kind is int else "g"
            if math.isfinite(self.low) and math.isfinite(self.high):
                text += f" from {self.low:{digits}} to {self.high:{digits}}"
            elif math.isfinite(self.low):
                text += f" of {self.low:{digits}} or more"
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
SECTION = Rule(kind=dict)

# Keys as patterns, part by part; a key that the chosen options do not have is not asked for.
RULES = {
    **dict.fromkeys(("checkpoint", "early_stopping", "loader", "paths", "data", "split", "features", "model", "augment",
                     "optimizer", "optimizer.lr_ratio", "schedule", "trainer"), SECTION),
    "augment.*": Rule(kind=dict, optional=True), "augment.*.*": Rule(kind=dict, optional=True),
    "watch": Rule(kind=dict, optional=True), "watch.*": Rule(kind=dict, optional=True),
    "watch.*.every_n_epochs": _int(1), "watch.*.every_n_steps": _int(1), "watch.*.num_clips": _int(1, 20),
    "watch.*.for_class": _one_of("predicted", "truth"), "watch.*.layer": Rule(optional=True),
    "watch.*.num_pairs": _int(1), "watch.*.num_named": _int(0, 10), "watch.*.num_bins": _int(1, 100),
    "watch.*.max_clips": _int(1, 5000), "watch.*.sprite_size": _int(8, 100), "watch.*.dead_above": _real(0, 1),
    "watch.*.steps_in_a_row": _int(1), "watch.*.vanish_below": _real(0), "watch.*.explode_above": POSITIVE,
    "fold": _int(1, 5), "seed": _int(0, 2**31 - 1), "resume": Rule(optional=True), "scored_by": Rule(optional=True),
    "report_optimistic": YES_NO, "objective": _one_of("val_accuracy", optional=True),
    "checkpoint.monitor": _one_of("val_accuracy", "val_loss", "val_top5", "val_macro_f1"),
    "checkpoint.save_top_k": _int(1), "early_stopping.patience": _int(1, optional=True),
    "loader.batch_size": _int(1), "loader.num_workers": _int(0), "loader.memory_limit_gb": _real(0),
    "paths.*": Rule(),
    "data.root": Rule(), "data.balance": _one_of("none", "oversample"), "data.seed": _int(0),
    "data.num_classes": _int(2, 10), "data.num_clips": _int(1), "data.seconds": _real(0.25), "data.sample_rate": _int(8000),
    "data.source_pattern": Rule(), "data.folds_csv": Rule(optional=True),
    "data.subset": _one_of("esc10", optional=True), "data.url": Rule(), "data.archive": Rule(), "data.download_to": Rule(),
    "data.creates": Rule(),
    "split.protocol": _one_of("holdout", "official", "all"),
    "features.stages": Rule(kind=list), "features.stages.*": _one_of("waveform", "spectrogram"),
    "model.input": _one_of("waveform", "spectrogram"),
    "features.kind": _one_of("mel_png", "waveform", "logmel"), "features.sample_rate": _int(1000),
    "features.seconds": POSITIVE, "features.pad": _one_of("zero", "repeat"), "features.n_fft": _int(16),
    "features.win_length": _int(1), "features.hop_length": _int(1), "features.n_mels": _int(1),
    "features.f_min": _real(0), "features.f_max": POSITIVE, "features.db_min": _real(), "features.db_max": _real(),
    "features.reference": _one_of("full_scale", "clip"), "features.colormap": Rule(optional=True),
    "features.normalize": _one_of("imagenet", "train", "none"), "features.read": _one_of("store", "compute", "lru"),
    "features.cache_size": _int(1),
    "model.precision": _one_of("auto", "float32", "bfloat16"), "model.dropout": _real(0, 1),
    "model.gradient_checkpointing": YES_NO,
    "model.activation": _one_of("relu", "leaky_relu"), "model.hidden": _int(1, optional=True), "model.name": Rule(),
    "model.weights": Rule(optional=True), "model.channels": Rule(kind=list), "model.channels.*": _int(1),
    "augment.*.*.probability": _real(0, 1), "augment.*.*.fill": _one_of("mean", "floor"),
    "augment.*.*.max_width": _int(0), "augment.*.*.num_masks": _int(0), "augment.*.*.alpha": _real(0),
    "augment.*.*.level": _real(0, 1),
    "augment.*.*.max_fraction": _real(0, 1), "augment.*.*.W": _int(0), "augment.*.*.F": _int(0), "augment.*.*.m_F": _int(0),
    "augment.*.*.T": _int(0), "augment.*.*.m_T": _int(0), "augment.*.*.p": _real(0, 1, above=0),
    "augment.*.*.*_rate": POSITIVE, "augment.*.*.*_db": _real(), "augment.*.*.*_seconds": _real(0),
    "augment.*.*.max_shift": _int(0), "augment.*.*.num_repeats": _int(1), "augment.*.*.max_decay": _real(0, 1),
    "augment.*.*.max_semitones": _real(0, 24),
    "optimizer.lr": POSITIVE, "optimizer.weight_decay": _real(0),
    "optimizer.lr_ratio.head": POSITIVE, "optimizer.lr_ratio.*": _real(0),
    "schedule.warmup": _real(0, 0.99), "schedule.start": _real(0, 1), "schedule.final": _real(0, 1),
    "trainer.max_epochs": _int(1), "trainer.precision": _one_of("auto", "float32", "bfloat16"),
    "trainer.accelerator": _one_of("auto", "cpu", "gpu", "cuda", "mps"), "trainer.devices": _int(1),
    "trainer.strategy": Rule(), "trainer.gradient_clip": _real(above=0, optional=True), "trainer.accumulate": _int(1),
    "trainer.freeze_epochs": _int(0), "trainer.label_smoothing": _real(0, 0.99),
    "trainer.channels_last": YES_NO, "trainer.cache_frozen": YES_NO,
    "trainer.profile": _one_of("parts", "trace", optional=True), "trainer.compile": YES_NO, "trainer.deterministic": YES_NO,
    "trainer.detect_anomaly": YES_NO, "trainer.check_data": YES_NO, "trainer.overfit_batches": _int(1, optional=True),
}


CHECKPOINT = Rule(kind=Path, meaning="a run folder or checkpoint file")
INPUT = Rule(kind=Path, choices=("-",), meaning="an audio file, a folder of them, or - for a recording on stdin")
NAME = Rule(optional=True, meaning="a name")

# The same for the scripts that take a checkpoint and few other keys.
SCRIPT_RULES = {
    "evaluate": {"checkpoint": CHECKPOINT, "data.root": Rule(kind=Path, optional=True, meaning="a folder"),
                 "shifts": _int(1, 100)},
    "explain": {"checkpoint": CHECKPOINT, "input": INPUT, "class": NAME, "layer": NAME, "window": _real(above=0, optional=True),
                "hop": _real(above=0, optional=True), "rows": _int(1, 20)},
    "predict": {"checkpoint": CHECKPOINT, "input": INPUT, "format": _one_of("table", "csv", "jsonl"), "top": _int(1),
                "window": _real(above=0, optional=True), "hop": _real(above=0, optional=True),
                "min_probability": _real(0, 1, optional=True), "max_entropy": _real(0, 1, optional=True),
                "batch_size": _int(1)},
    "export": {"checkpoint": CHECKPOINT, "format": _one_of("onnx", "torch"), "quantize": YES_NO,
               "input": Rule(kind=Path, optional=True, meaning="an audio file or a folder of them"),
               "data.root": Rule(kind=Path, optional=True, meaning="a folder")},
    "serve": {"checkpoint": CHECKPOINT, "host": Rule(), "port": _int(1, 65535), "max_megabytes": POSITIVE,
              "max_seconds": POSITIVE, "min_probability": _real(0, 1, optional=True),
              "max_entropy": _real(0, 1, optional=True)},
}


def rule_for(key: str) -> Rule | None:
    """The rule of a key such as `trainer.max_epochs`, None where every value will do."""
    parts = key.split(".")
    for pattern, rule in RULES.items():
        wanted = pattern.split(".")
        if len(wanted) == len(parts) and all(map(fnmatchcase, parts, wanted)):
            return rule
    return None
