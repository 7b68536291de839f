"""ESC-50 is fetched once, unpacked safely and checked; what goes wrong is said in one line."""

import io
import socket
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from esc50.data.archive import missing_audio, prepare
from esc50.data.clip import class_names
from esc50.data.folders import read_folder
from esc50.data.tables import COLUMNS, read_table
from esc50.errors import DataError

CONF = Path(__file__).resolve().parents[2] / "conf" / "data"
TOP = "ESC-50-master/"
# Two classes of ESC-10 whose targets are neither contiguous nor in the order of their names in ESC-50, and one other.
ROWS = [
    (f"{fold}-100-A-{target}.wav", fold, target, name, esc10, 100, "A")
    for fold in (1, 2)
    for target, name, esc10 in ((40, "helicopter", True), (1, "rooster", True), (14, "chirping_birds", False))
]
TABLE = "\n".join(",".join(map(str, row)) for row in [COLUMNS, *ROWS]) + "\n"


def audio_of(name: str) -> bytes:
    return name.encode() * 200


def members() -> dict[str, bytes]:
    """Names and contents as GitHub packs them, folders and files that nobody needs among them."""
    files = {
        TOP: b"",
        TOP + "README.md": b"# ESC-50",
        TOP + "LICENSE": b"CC BY-NC",
        TOP + "esc50.gif": b"GIF89a",
        TOP + "tests/test_dataset.py": b"import this",
        TOP + "meta/": b"",
        TOP + "meta/esc50.csv": TABLE.encode(),
        TOP + "audio/": b"",
        TOP + "audio/._1-100-A-1.wav": b"AppleDouble",
    }
    return files | {TOP + "audio/" + row[0]: audio_of(row[0]) for row in ROWS}


def pack(files: dict[str, bytes], *, links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in files.items():
            file.writestr(name, content)
        for name, goal in (links or {}).items():
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, 0o120777 << 16
            file.writestr(info, goal)
    return buffer.getvalue()


class Server(ThreadingHTTPServer):
    """Answers every GET with `body`, the first `sent` bytes of it, and counts the requests."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.body, self.status, self.sent, self.with_length, self.requests = pack(members()), 200, None, True, 0
        self.barrier = threading.Barrier(1)
        self.url = f"http://127.0.0.1:{self.server_port}/ESC-50/archive/refs/heads/master.zip"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.requests += 1
        try:
            server.barrier.wait(timeout=60)
        except threading.BrokenBarrierError:
            return
        self.send_response(server.status)
        if server.with_length:
            self.send_header("Content-Length", str(len(server.body)))
        self.end_headers()
        self.wfile.write(server.body[: server.sent])

    def log_message(self, *args):
        """Say nothing on the test's stderr."""


@pytest.fixture
def server(monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.barrier.abort()
        server.shutdown()
        thread.join()


@pytest.fixture
def places(tmp_path, server):
    """Arguments of `prepare` for an empty data folder below `tmp_path` and the server."""
    root = tmp_path / "data" / "esc50"
    return {"root": root, "creates": root, "archive": tmp_path / "data" / "ESC-50-master.zip", "url": server.url}


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def one_line(error: pytest.ExceptionInfo) -> str:
    message = str(error.value)
    assert "\n" not in message
    return message


UNPACKED = {"README.md", "LICENSE", "meta/esc50.csv"} | {f"audio/{row[0]}" for row in ROWS}


def test_fetched_and_unpacked_once_then_no_request_is_made(places, server, tmp_path):
    clips = prepare(**places)
    assert [clip.filename for clip in clips] == [row[0] for row in ROWS]
    assert all(clip.path.read_bytes() == audio_of(clip.filename) for clip in clips)
    assert files_below(places["root"]) == UNPACKED
    assert prepare(**places) == clips
    assert server.requests == 1
    assert files_below(tmp_path / "data") == {"ESC-50-master.zip"} | {f"esc50/{name}" for name in UNPACKED}


def test_half_a_zip_is_fetched_again(places, server):
    places["archive"].parent.mkdir()
    places["archive"].write_bytes(server.body[: len(server.body) // 2])
    assert len(prepare(**places)) == len(ROWS)
    assert server.requests == 1
    assert places["archive"].read_bytes() == server.body


def test_an_interrupted_unpack_is_repaired_from_the_zip_without_a_request(places, server):
    clips = prepare(**places)
    absent, empty, kept = clips[0].path, clips[1].path, clips[2].path
    absent.unlink()
    empty.write_bytes(b"")
    assert missing_audio(clips) == [clips[0], clips[1]]
    before = kept.stat()
    assert prepare(**places) == clips
    assert absent.read_bytes() == audio_of(absent.name) and empty.read_bytes() == audio_of(empty.name)
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert server.requests == 1


@pytest.mark.parametrize(
    ("evil", "links"),
    [
        (TOP + "../../evil.wav", False),
        ("/evil.wav", False),
        (TOP + "audio\\..\\evil.wav", False),
        ("C:evil.wav", False),
        (TOP + "audio/evil.wav", True),
    ],
)
def test_a_dangerous_member_is_refused_and_nothing_is_written(places, server, tmp_path, evil, links):
    server.body = pack(members(), links={evil: "/etc"}) if links else pack(members() | {evil: b"evil"})
    with pytest.raises(DataError, match="evil") as error:
        prepare(**places)
    assert str(places["archive"]) in one_line(error)
    assert files_below(tmp_path) == {"data/ESC-50-master.zip"}


def test_a_damaged_member_is_named_and_not_left_behind(places, server):
    name = ROWS[3][0]
    server.body = server.body.replace(audio_of(name), audio_of(name)[:-1] + b"!")
    with pytest.raises(DataError, match=f"{name} is damaged.*delete the zip") as error:
        prepare(**places)
    assert str(places["archive"]) in one_line(error)
    assert files_below(places["root"] / "audio") <= {row[0] for row in ROWS} - {name}


def test_a_clip_that_the_zip_lacks_is_named(places, server):
    absent = ROWS[2][0]
    server.body = pack({name: content for name, content in members().items() if not name.endswith(absent)})
    with pytest.raises(DataError, match=f"1 of the 6 clips.*{absent}") as error:
        prepare(**places)
    assert str(places["archive"]) in one_line(error)


def test_another_zip_is_not_taken_for_esc50(places, server, tmp_path):
    server.body = pack({"holiday/beach.wav": b"waves", "holiday/xmeta/esc50.csv": b""})
    with pytest.raises(DataError, match=r"holds no meta/esc50\.csv") as error:
        prepare(**places)
    assert str(places["archive"]) in one_line(error)
    assert files_below(tmp_path) == {"data/ESC-50-master.zip"}


def test_a_file_url_is_copied(places, server, tmp_path):
    there = tmp_path / "a mirror.zip"
    there.write_bytes(server.body)
    assert len(prepare(**places | {"url": there.as_uri()})) == len(ROWS)
    assert server.requests == 0 and there.read_bytes() == places["archive"].read_bytes()


@pytest.mark.parametrize("scheme", ["file", "http"])
def test_a_web_page_is_not_taken_for_the_zip(places, server, tmp_path, scheme):
    server.body = b"<!DOCTYPE html>\n<html>Sign in to the network</html>\n"
    page = tmp_path / "master.zip"
    page.write_bytes(server.body)
    with pytest.raises(DataError, match="not a whole zip") as error:
        prepare(**places | {"url": page.as_uri() if scheme == "file" else server.url})
    assert "data=synthetic" in one_line(error)
    assert files_below(tmp_path / "data") == set()


def assert_names_the_ways_out(message: str, places: dict):
    assert message.startswith(f"could not fetch {places['url']}: ")
    assert f"put the zip at {places['archive']}" in message
    assert "data.root=" in message and "data=synthetic" in message


def refused(server, monkeypatch):
    server.socket.shutdown(socket.SHUT_RDWR)


def unknown_host(server, monkeypatch):
    def getaddrinfo(*args, **kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def not_found(server, monkeypatch):
    server.status = 404


def silent(server, monkeypatch):
    server.barrier = threading.Barrier(2)
    monkeypatch.setattr("esc50.data.archive.TIMEOUTS", (10, 0.1))


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (refused, "Connection refused"),
        (unknown_host, "Name or service not known"),
        (not_found, "server answered 404"),
        (silent, "no answer in time"),
    ],
)
def test_without_the_server_one_line_names_the_ways_out(places, server, monkeypatch, failure, reason):
    places["archive"].parent.mkdir()
    places["archive"].write_bytes(b"half")
    failure(server, monkeypatch)
    with pytest.raises(DataError, match=reason) as error:
        prepare(**places)
    assert_names_the_ways_out(one_line(error), places)
    assert server.requests <= 1  # no second try that a person has to wait for
    assert places["archive"].read_bytes() == b"half"
    assert files_below(places["archive"].parent) == {places["archive"].name}


@pytest.mark.parametrize("with_length", [True, False])
def test_an_interrupted_download_leaves_nothing_behind(places, server, tmp_path, with_length):
    server.sent, server.with_length = len(server.body) // 2, with_length
    with pytest.raises(DataError) as error:
        prepare(**places)
    assert_names_the_ways_out(one_line(error), places)
    assert files_below(tmp_path) == set()
    server.sent = None
    assert len(prepare(**places)) == len(ROWS)


def test_a_folder_of_the_users_own_is_only_read(places, server, tmp_path):
    mine = tmp_path / "mine"
    (mine / "meta").mkdir(parents=True)
    (mine / "meta" / "esc50.csv").write_text(TABLE)
    places["archive"].parent.mkdir()
    places["archive"].write_bytes(server.body)  # even a zip at hand is not unpacked there
    with pytest.raises(DataError, match=f"6 of the 6 clips.*{ROWS[0][0]}") as error:
        prepare(**places | {"root": mine})
    assert str(mine / "audio") in one_line(error)
    assert files_below(mine) == {"meta/esc50.csv"} and not places["creates"].exists()
    assert server.requests == 0
    assert len(missing_audio(read_table(mine))) == len(ROWS)


def test_nothing_is_written_where_nothing_may_be(places, server, tmp_path):
    """Not even where the archive is at hand: what a stranger's checkpoint names as its data is only read."""
    places["archive"].parent.mkdir()
    places["archive"].write_bytes(server.body)
    for creates in ({}, {"creates": None}):
        with pytest.raises(DataError, match="no metadata table"):
            prepare(places["root"], archive=places["archive"], url=server.url, **creates)
    assert not places["root"].exists() and server.requests == 0 and places["archive"].read_bytes() == server.body


def test_another_spelling_of_the_own_folder_is_still_the_own_folder(places, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert len(prepare(**places | {"root": "data/other/../esc50"})) == len(ROWS)


def test_esc10_has_contiguous_targets_by_name(places):
    clips = prepare(**places, subset="esc10")
    assert class_names(clips) == ("helicopter", "rooster")
    assert {clip.category: clip.target for clip in clips} == {"helicopter": 0, "rooster": 1}
    assert files_below(places["root"]) == UNPACKED  # the rest is there for data=esc50


def test_a_folder_that_cannot_be_written_is_one_line(places):
    places["archive"].parent.write_text("a file where the folder should be")
    with pytest.raises(DataError, match=r"paths\.data") as error:
        prepare(**places)
    assert str(places["archive"].parent) in one_line(error)


def test_two_processes_at_once_both_succeed(places, server):
    server.barrier = threading.Barrier(2)  # neither gets an answer before both have asked
    code = (
        "import sys; from esc50.data.archive import prepare\n"
        "root, archive, url = sys.argv[1:]; print(len(prepare(root, creates=root, archive=archive, url=url)))"
    )
    arguments = [sys.executable, "-c", code, str(places["root"]), str(places["archive"]), server.url]
    both = [subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert [output for output, _ in outputs] == [f"{len(ROWS)}\n"] * 2
    assert server.requests == 2
    assert files_below(places["root"]) == UNPACKED


def test_the_real_recordings_and_the_real_table_without_any(shared, places, server):
    clips = prepare(**places | {"root": shared / "esc10"}, subset="esc10")
    assert len(clips) == 400 and len(class_names(clips)) == 10
    assert list(class_names(clips)) == sorted(class_names(clips))
    with pytest.raises(DataError, match=r"2000 of the 2000 clips.*1-100032-A-0\.wav") as error:
        prepare(**places | {"root": shared / "esc50_meta"})
    assert "data.root" in one_line(error)
    assert len(read_table(shared / "esc50_meta")) == 2000
    assert server.requests == 0 and not places["creates"].exists()


@pytest.mark.parametrize(
    ("stem", "source", "take"),
    [
        ("rec1-A", "rec1", "A"),
        ("rec1-B", "rec1", "B"),
        ("dog", "dog", "A"),
        ("a-b-C", "a-b", "C"),
        ("001", "001", "A"),
        ("rec1-AB", "rec1-AB", "A"),
        ("1-100032-A-0", "1-100032-A-0", "A"),
    ],
)
def test_the_source_pattern_of_data_folder(tmp_path, stem, source, take):
    config = yaml.safe_load((CONF / "folder.yaml").read_text())
    (tmp_path / "class").mkdir()
    for name in (stem, *(f"other{i}" for i in range(5))):
        (tmp_path / "class" / f"{name}.wav").touch()
    clips = read_folder(tmp_path, source_pattern=config["source_pattern"])
    assert [(clip.source, clip.take) for clip in clips if Path(clip.filename).stem == stem] == [(source, take)]
