"""Write a small procedural data set in ESC-50's own layout: the data that is always there."""

import json
import logging
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from esc50.config.kinds import Count, PositiveInt
from esc50.data.audio import to_int16
from esc50.data.clip import Clip
from esc50.data.synthetic_plan import Parameters, Planned, check, plan, table
from esc50.data.synthetic_sounds import PATTERNS, draw_voice, render
from esc50.data.tables import TABLE, read_table
from esc50.errors import DataError

log = logging.getLogger(__name__)

MARKER = "synthetic.json"
WAV_HEADER_BYTES = 44


def prepare(
    root: str | Path,
    *,
    num_classes: Annotated[int, Field(ge=2, le=10)] = 10,
    num_clips: PositiveInt = 400,
    seconds: Annotated[float, Field(ge=0.25)] = 5.0,
    sample_rate: Annotated[int, Field(ge=8000)] = 44100,
    seed: Count = 0,
    creates: str | Path | None = None,
) -> tuple[Clip, ...]:
    """Write `root`/meta/esc50.csv and `root`/audio/{fold}-{source}-{take}-{target}.wav once, and read the table back.

    Mono 16-bit PCM of `seconds` at `sample_rate` Hz. Each of the 5 folds holds equally many clips of each class, so
    `num_clips` must be a multiple of 5 * `num_classes`. Takes of one source lie in one fold. The first half of the
    classes is marked `esc10`, so that the subset can be tried too. A clip is a function of seed, source, take and
    length: with one version of numpy the same parameters give the same bytes, however many threads write them.

    Only where `root` is the folder `creates` is anything written; any other is only read. `root` appears whole or not at
    all. A complete set of the same parameters is used as it is; one written here with other parameters, or with files
    missing, is replaced. Raises ConfigError for impossible parameters, DataError for a folder that holds anything else.
    """
    parameters = Parameters(
        num_classes=num_classes, num_clips=num_clips, seconds=float(seconds), sample_rate=sample_rate, seed=seed
    )
    check(parameters)
    root = Path(root)
    place = root.resolve()  # a link to a folder on another disk stays a link
    if creates is None or place != Path(creates).resolve():
        return read_table(root)
    try:
        if not _is_complete(place, parameters):
            _check_replaceable(place)
            _write(place, parameters)
    except OSError as error:
        raise DataError(
            f"cannot write synthetic data to {root} ({error.strerror or error}); make room or rights there,"
            " or choose another data.root"
        ) from error
    return read_table(root)


def _read_marker(place: Path) -> tuple[dict, set[str]] | None:
    """Parameters and file names that a folder was written with; None where there is no marker, or not one of ours."""
    try:
        marker = json.loads((place / MARKER).read_text(encoding="utf-8"))
        return dict(marker["parameters"]), set(marker["files"])
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError):
        return None


def _is_complete(place: Path, parameters: Parameters) -> bool:
    marker = _read_marker(place)
    if marker is None or marker[0] != asdict(parameters):
        return False
    planned, size = plan(parameters), WAV_HEADER_BYTES + 2 * parameters.num_samples
    try:
        return (place / TABLE).read_text(encoding="utf-8") == table(planned, parameters.num_classes) and all(
            (place / "audio" / clip.filename).stat().st_size == size for clip in planned
        )
    except FileNotFoundError:
        return False


def _check_replaceable(place: Path) -> None:
    """Raise DataError unless `place` is absent, empty, or holds only what this module wrote there."""
    if not place.exists():
        return
    if not place.is_dir():
        raise DataError(f"{place} is a file; synthetic data needs a folder, choose another data.root")
    found = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file() and not path.name.startswith(".")}
    marker = _read_marker(place)
    foreign = sorted(found if marker is None else found - marker[1] - {MARKER})
    if foreign:
        raise DataError(
            f"{place} holds files that are not part of a synthetic data set, such as {foreign[0]}; nothing"
            " was overwritten, choose another data.root or move them away"
        )


def _write(place: Path, parameters: Parameters) -> None:
    """Write into a hidden folder beside `place`, then let it take that place."""
    staging = _sibling(place, "part")
    planned = plan(parameters)
    log.info("writing %d synthetic clips to %s", len(planned), place)
    try:
        (staging / "audio").mkdir(parents=True)
        (staging / TABLE).parent.mkdir()
        (staging / TABLE).write_text(table(planned, parameters.num_classes), encoding="utf-8", newline="\n")
        files = [TABLE.as_posix(), *(f"audio/{clip.filename}" for clip in planned)]
        marker = {"parameters": asdict(parameters), "files": files}
        (staging / MARKER).write_text(json.dumps(marker, indent=1) + "\n", encoding="utf-8")
        _write_clips(planned, partial(_write_clip, folder=staging / "audio", parameters=parameters))
        _install(staging, place, parameters)
    finally:
        shutil.rmtree(staging, ignore_errors=True)  # gone already where all went well


def _sibling(place: Path, suffix: str) -> Path:
    return place.with_name(f".{place.name}.{os.getpid()}-{secrets.token_hex(4)}.{suffix}")


def _write_clips(planned: Sequence[Planned], write: Callable[[Planned], None]) -> None:
    """In threads, not processes: those would run a caller's script again that has no guard around its own work."""
    from tqdm import tqdm

    progress = tqdm(total=len(planned), desc="synthetic clips", unit="clip")
    with progress, ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            for future in as_completed([pool.submit(write, clip) for clip in planned]):
                future.result()
                progress.update()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)  # nobody may write into a folder that is being removed
            raise


def _write_clip(clip: Planned, *, folder: Path, parameters: Parameters) -> None:
    import soundfile

    # Spawn keys, unlike sums, give every source and every take a stream of its own.
    of_source = np.random.SeedSequence(parameters.seed, spawn_key=(clip.source,))
    of_take = np.random.SeedSequence(parameters.seed, spawn_key=(clip.source, ord(clip.take)))
    pattern = list(PATTERNS.values())[clip.target]
    waveform = render(
        pattern,
        draw_voice(np.random.default_rng(of_source)),
        np.random.default_rng(of_take),
        num_samples=parameters.num_samples,
        sample_rate=parameters.sample_rate,
    )
    soundfile.write(folder / clip.filename, to_int16(waveform), parameters.sample_rate, subtype="PCM_16")


def _install(staging: Path, place: Path, parameters: Parameters) -> None:
    """Move `staging` to `place`. Where another process was faster with the same set, its folder is used."""
    if place.exists() and not _is_complete(place, parameters):
        _check_replaceable(place)
        old = _sibling(place, "old")
        with suppress(FileNotFoundError):  # another process is replacing it, too
            place.rename(old)
            shutil.rmtree(old)
    try:
        staging.rename(place)
    except OSError:
        if not _is_complete(place, parameters):
            raise
