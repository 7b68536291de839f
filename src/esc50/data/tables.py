"""Clips as a table lists them: ESC-50's metadata, and csv files with the columns that are wanted."""

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from esc50.data.clip import Clip
from esc50.errors import DataError

TABLE = Path("meta") / "esc50.csv"
COLUMNS = ("filename", "fold", "target", "category", "esc10", "src_file", "take")


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
        raise DataError(
            f"{table} line {line}: fold and target should be whole numbers, not {row['fold']!r} and {row['target']!r}"
        ) from None
    if not 1 <= fold <= 5:
        raise DataError(f"{table} line {line}: fold {fold} is not one of 1 to 5")
    return Clip(
        filename=row["filename"],
        path=table.parent.parent / "audio" / row["filename"],
        target=target,
        category=row["category"],
        fold=fold,
        source=row["src_file"],
        take=row["take"],
        esc10=row["esc10"].strip().lower() == "true",
    )


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
