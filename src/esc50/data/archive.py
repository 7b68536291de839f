"""ESC-50 on disk: fetched once, unpacked safely, checked against its table, repaired by running again."""

import logging
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import url2pathname

from esc50.data.audio import readable_suffixes
from esc50.data.clip import Clip
from esc50.data.tables import TABLE, read_table
from esc50.errors import DataError
from esc50.files import write_atomically

log = logging.getLogger(__name__)

TIMEOUTS = (10, 60)  # seconds: to be connected, to wait for more bytes
NUM_NAMED = 3  # missing clips that an error names


def prepare(
    root: str | Path,
    *,
    archive: str | Path,
    url: str,
    subset: Literal["esc10"] | None = None,
    creates: str | Path | None = None,
) -> tuple[Clip, ...]:
    """The clips of a folder in ESC-50's layout (`root`/meta/esc50.csv, `root`/audio), every one of them there.

    Only where `root` is the folder `creates` may anything be written: what is missing there is unpacked from the zip at
    `archive`, which is fetched from `url` (http, https or file) if it is absent or cut short. Any other `root` is only
    read. `subset="esc10"` keeps the ten classes of ESC-10. Raises DataError where clips are missing and cannot be had.
    """
    root, archive = Path(root), Path(archive)
    own = creates is not None and root.resolve() == Path(creates).resolve()
    if own and not _is_complete(root, subset=subset):
        try:
            if not _is_zip(archive):
                _fetch(url, archive)
            _unpack(archive, root)
        except OSError as error:
            raise DataError(
                f"could not put ESC-50 in place at {error.filename or root}: {error.strerror or error};"
                " make room there, or set paths.data to a folder that can be written to"
            ) from error
    clips = read_table(root, subset=subset)
    missing = missing_audio(clips)
    if missing:
        names = ", ".join(clip.filename for clip in missing[:NUM_NAMED])
        advice = (
            f"{archive} does not hold them: delete it, so that it is fetched again"
            if own
            else f"copy them there, or leave data.root out and let ESC-50 be fetched{f' to {creates}' if creates else ''}"
        )
        raise DataError(
            f"{len(missing)} of the {len(clips)} clips that {root / TABLE} lists are missing or empty in"
            f" {root / 'audio'}, first {names}; {advice}"
        )
    return clips


def missing_audio(clips: Sequence[Clip]) -> list[Clip]:
    """The clips whose file is absent or empty."""
    return [clip for clip in clips if not (clip.path.is_file() and clip.path.stat().st_size)]


def _is_complete(root: Path, *, subset: str | None) -> bool:
    return (root / TABLE).is_file() and not missing_audio(read_table(root, subset=subset))


def _is_zip(path: Path) -> bool:
    """Whether the file is there and ends with a zip's directory, as half a download does not."""
    if not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path):
            return True
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return False


def _fetch(url: str, archive: Path) -> None:
    """Put the zip behind `url` at `archive`, whole or not at all. Raises DataError with the ways out."""
    import requests

    broken = f"the file at {archive} is not a whole zip and was to be replaced; " if archive.is_file() else ""
    ways_out = (
        f"{broken}put the zip at {archive}, or give data.root=<folder that holds meta/ and audio/>, or take"
        " data=synthetic, which needs no download"
    )
    source = urlsplit(url)
    local = Path(url2pathname(source.path)) if source.scheme == "file" else None
    if local and not local.is_file():
        raise DataError(f"could not fetch {url}: no such file; {ways_out}")
    log.info("fetching %s to %s", url, archive)
    with write_atomically(archive) as temporary:
        try:
            if local:
                shutil.copyfile(local, temporary)
            else:
                _download(url, temporary)
        except requests.RequestException as error:
            raise DataError(f"could not fetch {url}: {_reason(error)}; {ways_out}") from error
        if not _is_zip(temporary):
            raise DataError(
                f"could not fetch {url}: the {temporary.stat().st_size} bytes that came are not a whole zip"
                f" archive; try again, or {ways_out}"
            )


def _download(url: str, path: Path) -> None:
    import pooch
    from tqdm import tqdm

    class Bar(tqdm):
        """GitHub announces no length for an archive: the bar then counts on, where tqdm would be false, and reset."""

        def __bool__(self) -> bool:
            return True

        def reset(self, total: float | None = None) -> None:
            if self.total:
                super().reset(total)

    # pooch would announce the file twice and print a hash that changes whenever GitHub makes the archive anew.
    pooch.get_logger().setLevel(logging.WARNING)
    answers = []  # kept to be closed: pooch leaves the connection open when the download breaks
    with Bar(desc="fetching", unit="B", unit_scale=True, delay=0.5) as bar:
        downloader = pooch.HTTPDownloader(
            progressbar=bar, chunk_size=4096, timeout=TIMEOUTS, hooks={"response": lambda answer, **_: answers.append(answer)}
        )
        try:
            pooch.retrieve(url, known_hash=None, fname=path.name, path=path.parent, downloader=downloader)
        finally:
            for answer in answers:
                answer.close()
    path.chmod(0o644)  # pooch leaves it readable to one user only


def _reason(error: Exception) -> str:
    """In a few words, why a request failed: the innermost cause says it best."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    cause: BaseException = error
    while inner := cause.__cause__ or cause.__context__:
        cause = inner
    return " ".join((getattr(cause, "strerror", None) or str(cause) or type(cause).__name__).split())


def _unpack(archive: Path, root: Path) -> None:
    """Write table, audio, README and licence below `root`; files that are there in the right size are kept."""
    from tqdm import tqdm

    with zipfile.ZipFile(archive) as file:
        members = [
            (member, path)
            for member, path in _wanted(file, archive=archive)
            if not ((root / path).is_file() and (root / path).stat().st_size == member.file_size)
        ]
        log.info("unpacking %d files of %s to %s", len(members), archive, root)
        total = sum(member.file_size for member, _ in members)
        with tqdm(total=total, desc="unpacking", unit="B", unit_scale=True, delay=0.5) as bar:
            for member, path in members:
                try:
                    with write_atomically(root / path) as temporary, file.open(member) as packed, temporary.open("wb") as whole:
                        shutil.copyfileobj(packed, whole)
                except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
                    raise DataError(
                        f"{archive}: {member.filename} is damaged ({error}); delete the zip, so that it is fetched again"
                    ) from error
                bar.update(member.file_size)


def _wanted(file: zipfile.ZipFile, *, archive: Path) -> list[tuple[zipfile.ZipInfo, PurePosixPath]]:
    """The members to unpack, with their paths below the root. Raises DataError if any member at all is not safe."""
    for member in file.infolist():
        danger = _danger(member)
        if danger:
            raise DataError(
                f"{archive}: refused, since the member {member.orig_filename!r} {danger}; nothing was"
                " unpacked, delete the zip and take it from where ESC-50 is published"
            )
    # The top folder is named after repository and branch; it is whatever the table lies in.
    names = [PurePosixPath(name) for name in file.namelist()]
    tops = [name.parents[1] for name in names if name.parts[-2:] == TABLE.parts]
    if not tops:
        raise DataError(
            f"{archive} holds no {TABLE.as_posix()}, so it is not the archive of ESC-50; delete it, so that it is fetched"
        )
    top, suffixes = min(tops, key=lambda path: len(path.parts)), readable_suffixes()
    wanted = []
    for member in file.infolist():
        path = PurePosixPath(member.filename)
        if member.is_dir() or not path.is_relative_to(top) or path.name.startswith("."):
            continue
        path = path.relative_to(top)
        match path.parts:
            case ("audio", _):
                keep = path.suffix.lower() in suffixes
            case ("meta", _):
                keep = True
            case (name,):
                keep = name.upper().startswith(("README", "LICENSE"))
            case _:
                keep = False
        if keep:
            wanted.append((member, path))
    return wanted


def _danger(member: zipfile.ZipInfo) -> str | None:
    """What makes a member unsafe to unpack, in words, or None."""
    name = member.orig_filename
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device"
    if "\\" in name:
        return "has a backslash in its name"
    if name.startswith("/") or re.match("[A-Za-z]:", name):
        return "has an absolute path"
    if ".." in PurePosixPath(name).parts:
        return "has a path that leaves the folder"
    return None
