"""Who trains, who validates, who tests: the protocols, and folds for data that has none."""

import csv
import hashlib
import json
import logging
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from esc50.data.clip import Clip
from esc50.data.tables import read_rows
from esc50.errors import DataError
from esc50.files import write_atomically

log = logging.getLogger(__name__)

NUM_FOLDS = 5
PROTOCOLS = ("holdout", "official", "all")


@dataclass(frozen=True, kw_only=True)
class Split:
    """The clips of each role. Under `official` there is no validation set, under `all` nothing is held back."""

    protocol: str
    train: tuple[Clip, ...]
    val: tuple[Clip, ...] = ()
    test: tuple[Clip, ...] = ()

    def roles(self) -> dict[str, tuple[Clip, ...]]:
        """Clips by role name: train, val, test."""
        return {"train": self.train, "val": self.val, "test": self.test}


def make_split(clips: Sequence[Clip], *, protocol: str, fold: int) -> Split:
    """Divide clips by whole folds, never by a random slice of one.

    `holdout`: `fold` tests, the fold before it (5 before 1) validates, the rest trains: the protocol to develop with.
    `official`: `fold` tests, the other four train, nothing is selected on: the protocol to publish with (Piczak 2015).
    `all`: everything trains, for deployment. Raises DataError where a role that the protocol needs gets no clip.
    """
    assert protocol in PROTOCOLS and 1 <= fold <= NUM_FOLDS
    if protocol == "all":
        return Split(protocol=protocol, train=tuple(clips))
    val_fold = (fold - 2) % NUM_FOLDS + 1 if protocol == "holdout" else None
    train: list[Clip] = []
    val: list[Clip] = []
    test: list[Clip] = []
    for clip in clips:
        (test if clip.fold == fold else val if clip.fold == val_fold else train).append(clip)
    split = Split(protocol=protocol, train=tuple(train), val=tuple(val), test=tuple(test))
    wanted = {"train": True, "val": val_fold is not None, "test": True}
    empty = [role for role, clips_of_role in split.roles().items() if wanted[role] and not clips_of_role]
    if empty:
        present = sorted({clip.fold for clip in clips})
        raise DataError(
            f"no clips for {' and '.join(empty)} with fold={fold} split={protocol}: the data has clips in"
            f" the folds {present}; choose another fold or another split"
        )
    return split


def leaking_sources(clips: Sequence[Clip]) -> dict[str, list[int]]:
    """Source recordings whose takes lie in more than one fold, with those folds."""
    folds = defaultdict(set)
    for clip in clips:
        folds[clip.source].add(clip.fold)
    return {source: sorted(of) for source, of in sorted(folds.items()) if len(of) > 1}


def with_fewer(split: Split, num_clips: int) -> Split:
    """The split with `num_clips` training clips at most, taken from each class in turn."""
    rank: Counter[int] = Counter()
    places = []
    for clip in split.train:
        places.append((rank[clip.target], clip.target))
        rank[clip.target] += 1
    chosen = sorted(range(len(places)), key=places.__getitem__)[:num_clips]
    return replace(split, train=tuple(split.train[i] for i in sorted(chosen)))


def assign_folds(clips: Sequence[Clip], *, seed: int) -> list[int]:
    """A fold, 1 to 5, for every clip: all takes of one source together, classes spread evenly (stratified groups)."""
    of_source: dict[str, Counter[str]] = defaultdict(Counter)
    for clip in clips:
        of_source[clip.source][clip.category] += 1
    sources = sorted(of_source)  # which fold a source lands in must not depend on the order of the listing
    if len(sources) < NUM_FOLDS:
        raise DataError(
            f"{len(clips)} clips come from {len(sources)} sources; five folds need at least {NUM_FOLDS};"
            " files of one name in two folders count as one source; if these are separate recordings, rename them,"
            " change data.source_pattern, or give data.folds_csv"
        )
    random.Random(seed).shuffle(sources)
    num_sources = Counter(category for content in of_source.values() for category in content)

    def rare_then_large_first(source: str) -> tuple[int, int]:
        return min(num_sources[category] for category in of_source[source]), -of_source[source].total()

    sources.sort(key=rare_then_large_first)
    filled: list[Counter[str]] = [Counter() for _ in range(NUM_FOLDS)]
    fold_of: dict[str, int] = {}
    for source in sources:
        fold = min(range(NUM_FOLDS), key=lambda fold: _crowding(of_source[source], filled[fold]))
        filled[fold].update(of_source[source])
        fold_of[source] = fold + 1
    folds = [fold_of[clip.source] for clip in clips]
    everywhere = set.intersection(*(set(here) for here in filled))
    if few := sorted({clip.category for clip in clips} - everywhere):
        log.warning("some folds have none of these classes, which need %d sources or more: %s", NUM_FOLDS, ", ".join(few))
    assert not leaking_sources([replace(clip, fold=fold) for clip, fold in zip(clips, folds, strict=True)])
    log.info(
        "folds by source: %d sources, no source in two folds, clips per fold %s", len(sources), [here.total() for here in filled]
    )
    return folds


def _crowding(source: Counter[str], fold: Counter[str]) -> tuple[int, int]:
    """How little a fold needs a source: how many clips of the source's classes it has, then how many clips."""
    return sum(fold[category] * num_clips for category, num_clips in source.items()), fold.total()


def read_folds(path: str | Path, clips: Sequence[Clip]) -> list[int]:
    """The folds that a csv (columns filename, fold) gives to these clips. Raises DataError for anything missing."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"data.folds_csv: no file at {path}")
    table: dict[str, str] = {}
    for line, row in read_rows(path, columns=("filename", "fold")):
        if table.setdefault(row["filename"], row["fold"]) != row["fold"]:
            raise DataError(f"{path} line {line} puts {row['filename']} into a second fold")
    folds = []
    for clip in clips:
        if clip.filename not in table:
            raise DataError(f"{path} gives no fold for {clip.filename}")
        if table[clip.filename] not in {str(fold) for fold in range(1, NUM_FOLDS + 1)}:
            raise DataError(f"{path}: the fold of {clip.filename} is {table[clip.filename]!r}, not one of 1 to 5")
        folds.append(int(table[clip.filename]))
    return folds


def fingerprint(split: Split) -> str:
    """The same for the same clips with the same folds and roles, wherever they lie; for any others another."""
    rows = sorted((role, clip.fold, clip.filename) for role, clips in split.roles().items() for clip in clips)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


def write_split(split: Split, path: str | Path) -> None:
    """Write split.csv: filename, fold, role (train, val or test)."""
    with write_atomically(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("filename", "fold", "role"))
        for role, clips in split.roles().items():
            writer.writerows((clip.filename, clip.fold, role) for clip in clips)
