"""Which clips there are: read ESC-50's metadata table, or a folder of sounds with one folder a class."""

import csv
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from esc50.data.audio import OTHER_AUDIO_SUFFIXES, readable_suffixes
from esc50.errors import DataError

log = logging.getLogger(__name__)

TABLE = Path("meta") / "esc50.csv"
COLUMNS = ("filename", "fold", "target", "category", "esc10", "src_file", "take")


@dataclass(frozen=True, kw_only=True)
class Clip:
    """One labelled recording.

    `filename` identifies the clip within its data set (relative to the folder that holds the audio, with forward
    slashes); `path` is where it lies now. `target` runs from 0 to classes - 1, `fold` from 1 to 5. `source` is the
    recording that the clip was cut from, `take` tells clips of one source apart.
    """

    filename: str
    path: Path
    target: int
    category: str
    fold: int
    source: str
    take: str = "A"
    esc10: bool = False


def class_names(clips: Sequence[Clip]) -> tuple[str, ...]:
    """Category names in the order of their targets; targets must be contiguous from 0."""
    names = {clip.target: clip.category for clip in clips}
    assert sorted(names) == list(range(len(names))), f"targets are not contiguous: {sorted(names)}"
    return tuple(names[target] for target in range(len(names)))


def read_table(root: str | Path, *, subset: str | None = None) -> tuple[Clip, ...]:
    """Read `root`/meta/esc50.csv, the layout of ESC-50, whose audio lies in `root`/audio.

    `subset="esc10"` keeps the ten classes of ESC-10 and makes their targets contiguous, in the order of their names.
    The audio itself is not looked at. Raises DataError for a missing or malformed table.
    """
    table = Path(root) / TABLE
    if not table.is_file():
        raise DataError(f"no metadata table at {table}; data.root should hold meta/esc50.csv and a folder audio")
    clips = [_clip_from_row(row, table=table, line=line) for line, row in read_rows(table, columns=COLUMNS)]
    _check_labels(clips, table)
    if subset == "esc10":
        clips = [clip for clip in clips if clip.esc10]
    if not clips:
        raise DataError(f"{table} lists no clips" + (f" of the subset {subset}" if subset else ""))
    names = sorted({clip.category for clip in clips})
    if subset or sorted({clip.target for clip in clips}) != list(range(len(names))):
        clips = [replace(clip, target=names.index(clip.category)) for clip in clips]
    return tuple(clips)


def read_rows(path: Path, *, columns: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """The rows of a csv file, each with its line number. Raises DataError where a column or a cell is missing."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:  # Excel puts a byte order mark at the start
            reader = csv.DictReader(file)
            absent = [column for column in columns if column not in (reader.fieldnames or ())]
            if absent:
                raise DataError(f"{path} lacks the columns {', '.join(absent)}; it should have {', '.join(columns)}")
            rows = [(reader.line_num, row) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a csv file in UTF-8 ({error}); save it as one") from None
    for line, row in rows:
        if None in row.values():
            raise DataError(f"{path} line {line} has fewer cells than the header")
    return rows


def _clip_from_row(row: dict[str, str], *, table: Path, line: int) -> Clip:
    try:
        fold, target = int(row["fold"]), int(row["target"])
    except ValueError:
        raise DataError(f"{table} line {line}: fold and target should be whole numbers, not "
                        f"{row['fold']!r} and {row['target']!r}") from None
    if not 1 <= fold <= 5:
        raise DataError(f"{table} line {line}: fold {fold} is not one of 1 to 5")
    return Clip(filename=row["filename"], path=table.parent.parent / "audio" / row["filename"], target=target,
                category=row["category"], fold=fold, source=row["src_file"], take=row["take"],
                esc10=row["esc10"].strip().lower() == "true")


def _check_labels(clips: Sequence[Clip], table: Path) -> None:
    names: dict[int, str] = {}
    targets: dict[str, int] = {}
    seen: set[str] = set()
    for clip in clips:
        if names.setdefault(clip.target, clip.category) != clip.category:
            raise DataError(f"{table}: target {clip.target} is named both {names[clip.target]!r} and {clip.category!r}")
        if targets.setdefault(clip.category, clip.target) != clip.target:
            raise DataError(f"{table}: {clip.category!r} has the targets {targets[clip.category]} and {clip.target}")
        if clip.filename in seen:
            raise DataError(f"{table}: {clip.filename} is listed twice")
        seen.add(clip.filename)


def read_folder(root: str | Path, *, source_pattern: str, folds_csv: str | Path | None = None,
                seed: int = 0) -> tuple[Clip, ...]:
    """Read one folder a class: every visible folder of `root` that holds audio, searched through to the bottom.

    Targets follow the folder names in sorted order. `source_pattern` is a regular expression matched against a file's
    stem; its group `source` names the recording a clip was cut from (and `take`, if there, the cut). All clips of one
    source get the same fold, 1 to 5, classes spread as evenly as that allows; `seed` decides ties. `folds_csv` (columns
    filename, fold; filenames relative to `root`) gives the folds instead. Raises DataError where no honest set of folds
    can be made, and for audio that libsndfile cannot read.
    """
    from esc50.data.folds import assign_folds, read_folds

    root = Path(root)
    if not root.is_dir():
        raise DataError(f"no folder at {root}; data.root should hold one folder a class")
    try:
        pattern = re.compile(source_pattern)
    except re.error as error:
        raise DataError(f"data.source_pattern {source_pattern!r} is not a regular expression: {error}") from None
    paths = _audio_by_class(root)
    clips = []
    for target, category in enumerate(sorted(paths)):
        for path in sorted(paths[category]):
            if any("\udc80" <= char <= "\udcff" for char in str(path)):  # no table could name such a clip
                raise DataError(f"{str(path)!r}: the name is not in UTF-8; rename the file or folder")
            match = pattern.fullmatch(path.stem)
            groups = match.groupdict() if match else {}
            clips.append(Clip(filename=path.relative_to(root).as_posix(), path=path, target=target, category=category,
                              fold=1, source=groups.get("source") or path.stem, take=groups.get("take") or "A"))
    folds = read_folds(folds_csv, clips) if folds_csv else assign_folds(clips, seed=seed)
    return tuple(replace(clip, fold=fold) for clip, fold in zip(clips, folds, strict=True))


def _audio_by_class(root: Path) -> dict[str, list[Path]]:
    """Audio files by class folder. Hidden files (AppleDouble's `._x.wav` too) and __MACOSX are left out and counted."""
    readable = readable_suffixes()
    found: dict[str, list[Path]] = {}
    unreadable: list[Path] = []
    ignored = sum(path.is_file() for path in root.iterdir())  # a clip beside the class folders has no class
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        if folder.name.startswith(".") or folder.name == "__MACOSX":
            ignored += sum(path.is_file() for path in folder.rglob("*"))
            continue
        for path in sorted(folder.rglob("*")):
            if not path.is_file():
                continue
            below = path.relative_to(folder).parts
            if any(part.startswith(".") or part == "__MACOSX" for part in below):
                ignored += 1
            elif path.suffix.lower() in readable:
                found.setdefault(folder.name, []).append(path)
            elif path.suffix.lower() in OTHER_AUDIO_SUFFIXES:
                unreadable.append(path)
            else:
                ignored += 1
    if unreadable:
        raise DataError(f"{len(unreadable)} files are in a format that libsndfile cannot read, the first is "
                        f"{unreadable[0]}; convert them to WAV or FLAC, or take them out of {root}")
    if not found:
        raise DataError(f"no audio found under {root}: wanted one folder a class with files in it that are"
                        f" {', '.join(sorted(readable))}")
    log.info("%d clips of %d classes under %s%s", sum(map(len, found.values())), len(found), root,
             f"; {ignored} other or hidden files ignored" if ignored else "")
    return found
