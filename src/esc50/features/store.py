"""The store: every clip's features computed once, kept on disk, keyed by all that shapes them.

A store is a folder `<root>/<data>/<recipe key>` with one PNG a clip (images only), one packed array of all clips and an
index. A clip is computed again when its file or any parameter changes; the rest is kept. A PNG that is gone or cut short
is written again.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from filelock import FileLock
from tqdm import tqdm

from esc50.data.clip import Clip
from esc50.errors import DataError
from esc50.features.pack import Pack, open_pack, remove_leftovers
from esc50.features.png import is_whole, read_png, write_png
from esc50.features.recipe import Recipe
from esc50.files import write_atomically

log = logging.getLogger(__name__)

MOST_NAMED = 20  # bad files named one by one before the rest is only counted


def store_folder(root: str | Path, clips: Sequence[Clip], recipe: Recipe) -> Path:
    """Where the features of these clips lie; data sets in different places never share a store."""
    base = Path(os.path.commonpath([clip.path.parent for clip in clips])).resolve()
    name = base.parent.name if base.name == "audio" else base.name
    return Path(root) / f"{name}-{hashlib.sha256(str(base).encode()).hexdigest()[:8]}" / recipe.key()


def build_store(
    clips: Sequence[Clip],
    *,
    root: str | Path,
    recipe: Recipe,
    colormap: str | None = None,
    num_workers: int | None = None,
    progress: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Bring the store up to date and return its packed array, memory-mapped, and the row of each clip.

    Returns `(packed, rows)`: `packed` is `[stored clips, ...]` read-only (uint8 `[mel, frames]` or int16 `[time]` a clip),
    `rows[i]` is the row of `clips[i]`. PNGs with a `colormap` lie beside the grey ones. Uses all cores unless `num_workers`
    says otherwise. Several processes may build one store at once. Raises DataError naming every file that cannot be read;
    the others are kept for the next time. Clips that had to be padded are counted in one warning.
    """
    folder = store_folder(root, clips, recipe)
    identities = _identities(clips)

    def state() -> tuple[Pack, list[Clip]]:
        pack = open_pack(folder)
        return pack, [
            clip
            for clip in clips
            if pack.entries.get(clip.filename) != identities[clip.filename]
            or (recipe.keeps_images and not is_whole(_png_path(folder, clip, colormap)))
        ]

    pack, stale = state()
    if stale:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):  # one process computes, the others wait and find it done
            pack, stale = state()
            if stale:
                pack = _update(folder, stale, pack, identities, recipe, colormap, num_workers, progress)
    return pack.values, np.array([pack.row_of[clip.filename] for clip in clips])


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
        raise DataError(
            f"{len(missing)} of {len(missing) + len(identities)} clips are not there, the first is {missing[0]}; check data.root"
        )
    return identities


def _png_path(folder: Path, clip: Clip, colormap: str | None) -> Path:
    return folder / (f"png-{colormap}" if colormap else "png") / f"{clip.filename}.png"


def _update(
    folder: Path,
    stale: Sequence[Clip],
    old: Pack,
    identities: dict[str, dict],
    recipe: Recipe,
    colormap: str | None,
    num_workers: int | None,
    progress: bool,
) -> Pack:
    """Compute what is stale, write a new pack of old and new rows, then point the index at it."""
    # Clips of the same folder that this run did not ask for (ESC-50 beside its subset ESC-10) stay in the store.
    # Sorted, so that processes that came to the same entries by different ways write the same pack under its name.
    entries: dict[str, dict | None] = dict(sorted({**old.entries, **identities}.items()))
    digest = hashlib.sha256(json.dumps(entries).encode()).hexdigest()[:12]
    path = folder / f"pack-{digest}.npy"
    stale_names = {clip.filename for clip in stale}
    failures: dict[str, str] = {}
    short: list[str] = []
    with write_atomically(path) as temporary:
        values = np.lib.format.open_memmap(
            temporary, mode="w+", dtype=recipe.stored_dtype, shape=(len(entries), *recipe.stored_shape)
        )
        new = Pack(entries=entries, values=values)
        for filename, row in new.row_of.items():
            if filename not in stale_names:
                values[row] = old.values[old.row_of[filename]]

        def work(clip: Clip) -> None:
            identity = identities[clip.filename]
            kept = old.of(clip.filename, identity)
            try:
                row = new.row_of[clip.filename]
                values[row] = _one(clip, _png_path(folder, clip, colormap), recipe, identity, colormap, kept)
                if kept is None and recipe.is_short(clip.path):
                    short.append(clip.filename)
            except DataError as error:
                failures[clip.filename] = str(error)

        _in_threads(work, stale, num_workers, progress=progress)
        values.flush()
        # Opened before it gets its name, under which another process may replace it at any time.
        new = replace(new, entries=entries | dict.fromkeys(failures), values=np.load(temporary, mmap_mode="r"))
    with write_atomically(folder / "index.json") as temporary:
        temporary.write_text(
            json.dumps({"parameters": recipe.parameters(), "pack": path.name, "clips": new.entries}), encoding="utf-8"
        )
    remove_leftovers(folder, keep=path)
    if short:
        log.warning(
            "%d of %d clips are shorter than features.seconds=%g and were padded (%s)",
            len(short),
            len(stale),
            recipe.seconds,
            recipe.pad,
        )
    if failures:
        _raise_failures([failures[clip.filename] for clip in stale if clip.filename in failures], len(identities))
    return new


def _in_threads(work: Callable[[Clip], None], clips: Sequence[Clip], num_workers: int | None, *, progress: bool) -> None:
    """Threads, not processes: decoding, FFT and PNG encoding all release the interpreter lock, and nothing is copied."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), ThreadPoolExecutor(num_workers or os.cpu_count()) as pool:
        for _ in tqdm(pool.map(work, clips), total=len(clips), desc="precompute", unit="clip", disable=not progress):
            pass


def _one(clip: Clip, png: Path, recipe: Recipe, identity: dict, colormap: str | None, kept: np.ndarray | None) -> np.ndarray:
    """Features of one clip: as the pack has kept them, from a PNG that an interrupted run left, or computed."""
    if not recipe.keeps_images:
        return recipe.compute(clip.path) if kept is None else kept
    image = kept
    if png.is_file() and not is_whole(png):
        log.warning("%s is cut short, written again", png)
    elif image is None and png.is_file():
        image = _still_true(png, recipe, identity)
        if image is not None:
            return image
    if image is None:
        image = recipe.compute(clip.path)
    write_png(png, image, parameters=recipe.parameters(), identity=identity, colormap=colormap)
    return image


def _still_true(png: Path, recipe: Recipe, identity: dict) -> np.ndarray | None:
    """The image of a PNG that was made with these parameters from this very file, else None."""
    try:
        image, texts = read_png(png)
    except (OSError, ValueError) as error:
        log.warning("%s is damaged (%s), computed again", png, error)
        return None
    return image if texts == {"parameters": recipe.parameters(), "source": identity} else None


def _raise_failures(failures: list[str], num_clips: int) -> None:
    for failure in failures[:MOST_NAMED]:
        log.error("%s", failure)
    raise DataError(
        f"{len(failures)} of {num_clips} clips cannot be used, the first: {failures[0]}"
        + (f" (the first {min(len(failures), MOST_NAMED)} are named above)" if len(failures) > 1 else "")
    )
