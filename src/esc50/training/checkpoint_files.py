"""Checkpoints as files: found by run folder, read as plain data, described. Free of Lightning."""

from pathlib import Path
from typing import Any

import torch

from esc50.errors import DataError
from esc50.files import write_atomically
from esc50.results.record import read_metrics

FOLDER = "checkpoints"
LAST = "last.ckpt"


def find_checkpoint(path: str | Path) -> Path:
    """The checkpoint that `path` means: a file itself; of a run folder the tested one, as its metrics.json says, else the
    last. Raises DataError."""
    path = Path(path)
    if path.is_file():
        return path
    if not path.is_dir():
        raise DataError(f"no checkpoint or run folder at {path}")
    named = read_metrics(path).get("checkpoint") if (path / "metrics.json").is_file() else None
    return _existing(path / named if named else path / FOLDER / LAST, path)


def find_last_checkpoint(path: str | Path) -> Path:
    """The checkpoint to go on from: a file itself, of a run folder the last one. Raises DataError."""
    path = Path(path)
    return path if path.is_file() else _existing(path / FOLDER / LAST, path)


def _existing(checkpoint: Path, folder: Path) -> Path:
    if not checkpoint.is_file():
        name = checkpoint.relative_to(folder) if checkpoint.is_relative_to(folder) else checkpoint
        raise DataError(f"{folder} holds no {name}; it is not the folder of a run that finished an epoch")
    return checkpoint


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint on the CPU, plain tensors and builtin types only. Raises DataError for anything else."""
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for files that are not its own
        raise DataError(f"{path} is not a readable checkpoint ({_first_line(error)})") from None
    if not isinstance(checkpoint, dict) or not isinstance(checkpoint.get("esc50"), dict):
        raise DataError(f"{path} is not a checkpoint of this program: it lacks the description of data and front end")
    return checkpoint


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:120]


def describe(path: Path, **facts: Any) -> None:
    """Add plain-data `facts` to what the checkpoint `path` says of itself, unless it says so already."""
    stored = load_checkpoint(path)
    if stored["esc50"] | facts == stored["esc50"]:
        return
    stored["esc50"] |= facts
    with write_atomically(path) as temporary:
        torch.save(stored, temporary)
