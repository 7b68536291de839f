"""The store: every clip's features computed once, kept on disk, keyed by all that shapes them.

A store is a folder `<root>/<data>/<recipe key>` with one PNG a clip (images only), one packed array of all clips and an
index. A clip is computed again when its file or any parameter changes; the rest is kept.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from tqdm import tqdm

from esc50.data.manifest import Clip
from esc50.errors import DataError
from esc50.features.png import read_png, write_png
from esc50.features.recipe import Recipe
from esc50.files import write_atomically

log = logging.getLogger(__name__)

MOST_NAMED = 20  # bad files named one by one before the rest is only counted


def store_folder(root: str | Path, clips: Sequence[Clip], recipe: Recipe) -> Path:
    """Where the features of these clips lie; data sets in different places never share a store."""
    base = Path(os.path.commonpath([clip.path.parent for clip in clips])).resolve()
    name = base.parent.name if base.name == "audio" else base.name
    return Path(root) / f"{name}-{hashlib.sha256(str(base).encode()).hexdigest()[:8]}" / recipe.key()


def build_store(clips: Sequence[Clip], *, root: str | Path, recipe: Recipe, colormap: str | None = None,
                num_workers: int | None = None) -> np.ndarray:
    """Bring the store up to date and return its packed array, memory-mapped, and the row of each clip.

    Returns `(packed, rows)`: `packed` is `[stored clips, ...]` read-only (uint8 `[mel, frames]` or int16 `[time]` a clip),
    `rows[i]` is the row of `clips[i]`. Uses all cores unless `num_workers` says otherwise. Several processes may build one
    store at once. Raises DataError naming every file that cannot be read; the others are kept for the next time.
    """
    folder = store_folder(root, clips, recipe)
    identities = _identities(clips)
    index = _read_index(folder)
    known = index["clips"] if index else {}
    stale = [clip for clip in clips if known.get(clip.filename) != identities[clip.filename]]
    if stale or index is None:
        index = _update(folder, clips, stale, index, identities, recipe, colormap, num_workers)
    row_of = {filename: row for row, filename in enumerate(index["clips"])}
    packed = np.load(folder / index["pack"], mmap_mode="r")
    return packed, np.array([row_of[clip.filename] for clip in clips])


def _identities(clips: Iterable[Clip]) -> dict[str, dict]:
    """Size and modification time of each clip's file. Raises DataError for files that are not there."""
    identities, missing = {}, []
    for clip in clips:
        try:
            stat = clip.path.stat()
        except OSError:
            missing.append(clip.path)
            continue
        identities[clip.filename] = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    if missing:
        raise DataError(f"{len(missing)} of {len(missing) + len(identities)} clips are not there, the first is "
                        f"{missing[0]}; check data.root")
    return identities


def _read_index(folder: Path) -> dict | None:
    """The index of a store whose pack is there, else None."""
    path = folder / "index.json"
    if not path.is_file():
        return None
    index = json.loads(path.read_text(encoding="utf-8"))
    return index if (folder / index["pack"]).is_file() else None


def _update(folder: Path, clips: Sequence[Clip], stale: Sequence[Clip], index: dict | None, identities: dict[str, dict],
            recipe: Recipe, colormap: str | None, num_workers: int | None) -> dict:
    """Compute what is stale, write a new pack of old and new rows, then point the index at it."""
    old = index["clips"] if index else {}
    old_pack = np.load(folder / index["pack"], mmap_mode="r") if index else None
    old_rows = {filename: row for row, filename in enumerate(old)}
    # Clips of the same folder that this run did not ask for (ESC-50 beside its subset ESC-10) stay in the store.
    entries = {**old, **identities}
    digest = hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()[:12]
    pack = f"pack-{digest}.npy"
    stale_names = {clip.filename for clip in stale}
    row_of = {filename: row for row, filename in enumerate(entries)}
    failures: list[str] = []

    with write_atomically(folder / pack) as temporary:
        packed = np.lib.format.open_memmap(temporary, mode="w+", dtype=recipe.stored_dtype,
                                           shape=(len(entries), *recipe.stored_shape))
        for filename, row in row_of.items():
            if filename not in stale_names:
                packed[row] = old_pack[old_rows[filename]]

        def work(clip: Clip) -> str | None:
            try:
                packed[row_of[clip.filename]] = _one(clip, folder, recipe, identities[clip.filename], colormap)
            except DataError as error:
                return str(error)
            return None

        _in_threads(work, stale, num_workers, failures)
        packed.flush()
        if failures:
            _raise_failures(failures, len(clips))
    index = {"parameters": recipe.parameters(), "pack": pack, "clips": entries}
    with write_atomically(folder / "index.json") as temporary:
        temporary.write_text(json.dumps(index), encoding="utf-8")
    for other in folder.glob("pack-*.npy"):
        if other.name != pack:
            other.unlink(missing_ok=True)
    return index


def _in_threads(work: Callable[[Clip], str | None], clips: Sequence[Clip], num_workers: int | None,
                failures: list[str]) -> None:
    """Threads, not processes: decoding, FFT and PNG encoding all release the interpreter lock, and nothing is copied."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), ThreadPoolExecutor(num_workers or os.cpu_count()) as pool:
        results = pool.map(work, clips)
        failures.extend(filter(None, tqdm(results, total=len(clips), desc="precompute", unit="clip")))


def _one(clip: Clip, folder: Path, recipe: Recipe, identity: dict, colormap: str | None) -> np.ndarray:
    """Features of one clip: its PNG if that is still true (an interrupted run left it), else computed."""
    if not recipe.keeps_images:
        return recipe.compute(clip.path)
    path = folder / "png" / Path(clip.filename).with_suffix(Path(clip.filename).suffix + ".png")
    if path.is_file():
        try:
            image, texts = read_png(path)
        except (OSError, ValueError) as error:
            log.warning("%s is damaged (%s), computed again", path, error)
        else:
            if texts == {"parameters": recipe.parameters(), "source": identity}:
                return image
    image = recipe.compute(clip.path)
    write_png(path, image, parameters=recipe.parameters(), identity=identity, colormap=colormap)
    return image


def _raise_failures(failures: list[str], num_clips: int) -> None:
    for failure in failures[:MOST_NAMED]:
        log.error("%s", failure)
    raise DataError(f"{len(failures)} of {num_clips} clips cannot be used, the first: {failures[0]}"
                    + (f" (the first {min(len(failures), MOST_NAMED)} are named above)" if len(failures) > 1 else ""))
