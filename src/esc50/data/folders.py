"""Clips as folders hold them: one folder a class, folds by the recordings that clips were cut from."""

import logging
import re
from dataclasses import replace
from pathlib import Path

from esc50.config.kinds import Count
from esc50.data.audio import OTHER_AUDIO_SUFFIXES, readable_suffixes
from esc50.data.clip import Clip
from esc50.data.folds import assign_folds, read_folds
from esc50.errors import DataError

log = logging.getLogger(__name__)


def read_folder(
    root: str | Path, *, source_pattern: str, folds_csv: str | Path | None = None, seed: Count = 0
) -> tuple[Clip, ...]:
    """Read one folder a class: every visible folder of `root` that holds audio, searched through to the bottom.

    Targets follow the folder names in sorted order. `source_pattern` is a regular expression matched against a file's
    stem; its group `source` names the recording a clip was cut from (and `take`, if there, the cut). All clips of one
    source get the same fold, 1 to 5, classes spread as evenly as that allows; `seed` decides ties. `folds_csv` (columns
    filename, fold; filenames relative to `root`) gives the folds instead. Raises DataError where no honest set of folds
    can be made, and for audio that libsndfile cannot read.
    """
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
            clips.append(
                Clip(
                    filename=path.relative_to(root).as_posix(),
                    path=path,
                    target=target,
                    category=category,
                    fold=1,
                    source=groups.get("source") or path.stem,
                    take=groups.get("take") or "A",
                )
            )
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
        raise DataError(
            f"{len(unreadable)} files are in a format that libsndfile cannot read, the first is "
            f"{unreadable[0]}; convert them to WAV or FLAC, or take them out of {root}"
        )
    if not found:
        raise DataError(
            f"no audio found under {root}: wanted one folder a class with files in it that are {', '.join(sorted(readable))}"
        )
    log.info(
        "%d clips of %d classes under %s%s",
        sum(map(len, found.values())),
        len(found),
        root,
        f"; {ignored} other or hidden files ignored" if ignored else "",
    )
    return found
