"""The packed array of a store: all kept values, and what each row was made from."""

import json
import logging
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

log = logging.getLogger(__name__)

LEFTOVER_SECONDS = 86400  # a temporary pack this old belongs to a process that was killed


@dataclass(frozen=True, kw_only=True)
class Pack:
    """All kept values in one array, and what each row was made from: `[len(entries), ...]`, in the order of `entries`."""

    entries: dict[str, dict | None]  # the file's identity by filename, None where it could not be read
    values: np.ndarray

    @cached_property
    def row_of(self) -> dict[str, int]:
        return {filename: row for row, filename in enumerate(self.entries)}

    def of(self, filename: str, identity: dict) -> np.ndarray | None:
        """The values of a clip, unless its file has another identity by now."""
        return self.values[self.row_of[filename]] if self.entries.get(filename) == identity else None


def open_pack(folder: Path) -> Pack:
    """What the store holds; nothing where there is none or it is damaged."""
    path = folder / "index.json"
    for _ in range(3):  # another process may replace the pack between reading the index and opening it
        if not path.is_file():
            break
        try:
            index = json.loads(path.read_text(encoding="utf-8"))
            return Pack(entries=index["clips"], values=np.load(folder / index["pack"], mmap_mode="r"))
        except FileNotFoundError:
            continue
        except (ValueError, EOFError, KeyError, TypeError) as error:
            log.warning("the store %s is damaged (%s), built again", folder, error)
            break
    return Pack(entries={}, values=np.empty(0))


def remove_leftovers(folder: Path, *, keep: Path) -> None:
    """Remove packs that the index no longer names and temporary ones that a killed process left behind."""
    for pack in folder.glob("pack-*.npy"):
        if pack != keep:
            pack.unlink(missing_ok=True)
    for leftover in folder.glob(".*.part.npy"):
        try:
            if time.time() - leftover.stat().st_mtime > LEFTOVER_SECONDS:
                leftover.unlink(missing_ok=True)
        except FileNotFoundError:  # another process was faster
            continue
