"""A trained model as a file for other programs: written, compared on real clips, described."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from esc50.assembly.data import build_clips, build_split
from esc50.assembly.restore import load
from esc50.assembly.retest import check_calls
from esc50.config.door import check_data
from esc50.data.clip import Clip, class_names
from esc50.errors import ConfigError, Esc50Error, TrainingError
from esc50.files import write_atomically
from esc50.inference.deployed import Deployed
from esc50.inference.export import (
    Run,
    answers,
    facts,
    milliseconds,
    run_onnx,
    run_predictor,
    run_torch,
    write_int8,
    write_onnx,
    write_torch,
)
from esc50.inference.recordings import recordings_of
from esc50.runs.test import check_same_clips
from esc50.training.checkpoint_files import find_checkpoint, load_checkpoint

log = logging.getLogger(__name__)

TOLERANCE = 1e-4  # of a probability, between the file and what it was made from
NUM_COMPARED = 32  # clips
NUM_CALIBRATION = 64  # clips that set the ranges of eight bits
SUFFIXES = {"onnx": ".onnx", "torch": ".pt2"}


@dataclass(frozen=True, kw_only=True)
class Sounds:
    """Recordings to compare with, by what they are: `paths`, their `targets` where known, and `calibration`, which sets the
    ranges of eight bits."""

    what: str
    paths: tuple[Path, ...]
    targets: np.ndarray | None
    calibration: tuple[Path, ...]


def export(checkpoint: str | Path, folder: Path, *, format: str, quantize: bool, source: str | None, root: str | None) -> Path:
    """Write `model.onnx` or `model.pt2` and `model.json` into `folder`, with `quantize` `model_int8.onnx` too; returns the
    model's path.

    Compared on the recordings of `source`, a file or a folder, or where it is None on the test clips of the checkpoint's own
    data, at `root` if not where they lay in training. Raises TrainingError where the answers differ by more than TOLERANCE.
    """
    path = find_checkpoint(checkpoint)
    predictor = load(path, accelerator="cpu")
    sounds = _given(source) if source is not None else _own(load_checkpoint(path), root)
    few = [predictor.recipe.read(one) for one in _spread(sounds.paths, NUM_COMPARED)]
    model = folder / f"model{SUFFIXES[format]}"
    folder.mkdir(parents=True, exist_ok=True)
    deployed = Deployed(predictor).eval()
    (write_onnx if format == "onnx" else write_torch)(deployed, model)
    here, there = run_predictor(predictor), (run_onnx if format == "onnx" else run_torch)(model)
    expected = answers(here, few)
    difference = float(np.abs(answers(there, few) - expected).max())
    if not difference <= TOLERANCE:
        model.unlink()
        raise TrainingError(
            f"{model.name} answers differently: by up to {difference:.1e} on {len(few)} {sounds.what}, wanted"
            f" {TOLERANCE:g} at most; it was removed"
        )
    found = {
        "checkpoint": str(path),
        **facts(predictor),
        "compared_on": f"{len(few)} {sounds.what}",
        "largest_difference": difference,
        "bytes": model.stat().st_size,
        "bytes_of_checkpoint": path.stat().st_size,
        "milliseconds": milliseconds(there, few),
        "milliseconds_of_predict": milliseconds(here, few),
    }
    log.info(
        "%s: answers differ from predict's by at most %.1e on %d %s; %.1f MB; %.1f ms a clip, predict %.1f ms",
        model,
        difference,
        len(few),
        sounds.what,
        found["bytes"] / 1e6,
        found["milliseconds"],
        found["milliseconds_of_predict"],
    )
    if quantize:
        found["int8"] = _quantized(model, folder / "model_int8.onnx", predictor.recipe.read, sounds, there)
    with write_atomically(folder / "model.json") as temporary:
        temporary.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return model


def _quantized(model: Path, small: Path, read: Any, sounds: Sounds, run: Run) -> dict[str, Any]:
    write_int8(model, small, [read(path) for path in sounds.calibration])
    run_small = run_onnx(small)
    clips = [read(path) for path in sounds.paths]
    before, after = (answers(one, clips).argmax(axis=1) for one in (run, run_small))
    found: dict[str, Any] = {
        "file": small.name,
        "bytes": small.stat().st_size,
        "milliseconds": milliseconds(run_small, clips),
        "compared_on": f"{len(clips)} {sounds.what}",
        "same_label": float((before == after).mean()),
    }
    scores = ""
    if sounds.targets is not None:
        found |= {
            "accuracy_before": float((before == sounds.targets).mean()),
            "accuracy_after": float((after == sounds.targets).mean()),
        }
        scores = f"accuracy {found['accuracy_before']:.4f} before, {found['accuracy_after']:.4f} after, "
    log.info(
        "%s: %sthe same label for %.1f %% of %d %s; %.1f MB; %.1f ms a clip",
        small,
        scores,
        100 * found["same_label"],
        len(clips),
        sounds.what,
        found["bytes"] / 1e6,
        found["milliseconds"],
    )
    return found


def _given(source: str) -> Sounds:
    with recordings_of(source) as names:
        paths = tuple(names)
    return Sounds(what="recordings", paths=paths, targets=None, calibration=_spread(paths, NUM_CALIBRATION))


def _own(stored: Mapping[str, Any], root: str | None) -> Sounds:
    check_calls(stored)
    cfg = OmegaConf.create(stored["esc50"]["config"])
    if root is not None:
        cfg.data.root = root
    if "creates" in cfg.data:
        cfg.data.creates = None  # nothing is fetched to compare with
    try:
        check_data(cfg)
        clips = build_clips(cfg)
        split = build_split(cfg, clips)
        check_same_clips(stored, split, class_names(clips), cfg.data.root)
    except Esc50Error as error:
        raise ConfigError(f"no clips to compare with ({error}); give data.root=, or input=recordings") from None
    what, clips = ("test clips", split.test) if split.test else ("training clips", split.train)
    return Sounds(
        what=what,
        paths=_paths(clips),
        targets=np.array([clip.target for clip in clips]),
        calibration=_paths(_spread(split.train, NUM_CALIBRATION)),
    )


def _paths(clips: tuple[Clip, ...]) -> tuple[Path, ...]:
    return tuple(clip.path for clip in clips)


def _spread(clips: tuple, count: int) -> tuple:
    """At most `count` of them, evenly from the whole list, which goes by classes."""
    return tuple(clips[i * len(clips) // count] for i in range(count)) if len(clips) > count else clips
