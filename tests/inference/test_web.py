"""The page answers as predict does, refuses what is too much, keeps nothing and talks to nobody."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import soundfile

from esc50 import load
from esc50.errors import ConfigError, DataError
from esc50.inference import web
from esc50.inference.web import Limits, answer_upload

ROOT = Path(__file__).resolve().parents[2]
LIMITS = Limits(max_megabytes=0.5, max_seconds=3)
WAIT = 180  # seconds, for a page on a busy machine


def test_an_upload_is_answered_as_predict_does_with_a_picture_of_the_class_asked_for(trained, sounds):
    model = load(trained)
    path = sounds / "hum" / "hum0-A.wav"
    verdict, guesses, image, rows = answer_upload(model, LIMITS, path, class_name=None)
    found = model.predict(path)
    assert verdict == f"## {found.label}" and guesses == dict(zip(model.class_names, found.probs.tolist(), strict=True))
    assert image.dtype == np.uint8 and image.ndim == 3 and len(np.unique(image.reshape(-1, 3), axis=0)) > 500
    assert rows == []
    other = answer_upload(model, LIMITS, path, class_name=next(name for name in model.class_names if name != found.label))
    assert other[0] == verdict and other[2].shape == image.shape and not np.array_equal(other[2], image)


def test_a_network_without_maps_answers_without_a_picture_and_says_why(trained, sounds, monkeypatch):
    model, path = load(trained), sounds / "hum" / "hum0-A.wav"

    def refuse(*_, **__):
        raise ConfigError("this model makes no feature map")

    monkeypatch.setattr(web, "explained", refuse)
    verdict, guesses, image, _ = answer_upload(model, LIMITS, path, class_name=None)
    assert verdict == f"## {model.predict(path).label}\n\nthis model makes no feature map"
    assert image is None and sum(guesses.values()) == pytest.approx(1)


def test_a_long_upload_has_a_time_line(trained, sounds, tmp_path):
    noise, tone = (soundfile.read(sounds / name)[0] for name in ("hiss/hiss0-A.wav", "hum/hum0-A.wav"))
    soundfile.write(tmp_path / "long.wav", np.concatenate([noise, noise, tone]), 8000)
    model = load(trained)
    _, _, image, rows = answer_upload(model, LIMITS, tmp_path / "long.wav", class_name=None)
    stretches = model.predict(tmp_path / "long.wav").timeline
    assert [row[:3] for row in rows] == [[f"0:{one.start:04.1f}", f"0:{one.end:04.1f}", one.label] for one in stretches]
    assert image.shape[0] > 500  # three rows


@pytest.mark.parametrize(
    ("seconds", "message"), [(3.5, "clip.wav: 3.5 seconds; wanted 3 at most"), (0, "clip.wav: not readable as audio")]
)
def test_what_is_too_long_or_no_sound_is_refused_without_naming_folders(seconds, message, trained, tmp_path):
    if seconds:
        soundfile.write(tmp_path / "clip.wav", np.zeros(int(8000 * seconds)), 8000)
    else:
        (tmp_path / "clip.wav").write_text("<html>")
    with pytest.raises(DataError) as caught:
        answer_upload(load(trained), LIMITS, tmp_path / "clip.wav", class_name=None)
    assert str(caught.value).startswith(message) and str(tmp_path) not in str(caught.value)


def test_a_wrong_port_is_refused_and_nothing_is_written(trained, command, tmp_path):
    ended = command("scripts/serve.py", f"checkpoint={trained}", "port=0", cwd=tmp_path)
    assert (ended.status, ended.err) == (2, "error: port=0: wanted a whole number from 1 to 65535\n")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def serve(trained, free_port, tmp_path):
    """Starts the page, and gives its address, its process, and the folder where it keeps uploads."""
    started = []

    def start(*, keep_seconds: int = 600) -> tuple[str, subprocess.Popen, Path]:
        program = (
            f"from esc50.inference import web; web.CHECK_SECONDS, web.KEEP_SECONDS = 1, {keep_seconds}; import runpy;"
            f" runpy.run_path({str(ROOT / 'scripts' / 'serve.py')!r}, run_name='__main__')"
        )
        started.append(
            subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    program,
                    f"checkpoint={trained}",
                    f"port={free_port}",
                    "max_megabytes=0.5",
                    "min_probability=0",
                ],
                cwd=tmp_path,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | {"TMPDIR": str(tmp_path)},
            )
        )
        assert f"http://127.0.0.1:{free_port}/" in started[-1].stdout.readline()
        return f"http://127.0.0.1:{free_port}/", started[-1], tmp_path

    yield start
    for program in started:
        program.kill()
        program.wait()
        program.stdout.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_upload_is_removed_when_it_is_old_enough(serve, sounds):
    address, _, temporary = serve(keep_seconds=2)
    content = (sounds / "hum" / "hum0-A.wav").read_bytes()
    body = (
        b'--edge\r\nContent-Disposition: form-data; name="files"; filename="hum.wav"\r\n'
        b"Content-Type: audio/wav\r\n\r\n" + content + b"\r\n--edge--\r\n"
    )
    request = urllib.request.Request(f"{address}gradio_api/upload", body, {"Content-Type": "multipart/form-data; boundary=edge"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        (path,) = json.loads(answer.read())
    assert Path(path).is_relative_to(temporary) and Path(path).name == "hum.wav"
    deadline = time.monotonic() + WAIT
    while Path(path).exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not Path(path).exists()


def upload(browser, address: str, path: Path, wanted: str) -> str:
    """Open the page, drop the file, and return the page's text once it holds `wanted`, or what it holds in the end."""
    browser.get(address)
    deadline = time.monotonic() + WAIT
    chosen, text = False, ""
    while wanted not in text and time.monotonic() < deadline:
        time.sleep(0.5)
        if not chosen and (fields := browser.find_elements("css selector", "#sound input[type=file]")):
            fields[0].send_keys(str(path))
            chosen = True
        text = browser.find_element("tag name", "body").text if chosen else ""
    return text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_in_a_browser_a_dropped_sound_is_labelled_drawn_and_removed_and_nothing_leaves_the_machine(
    browser, trained, serve, sounds
):
    address, program, temporary = serve()
    real = ROOT.parent / "shared" / "esc10" / "audio" / "1-100032-A-0.ogg"
    path = real if real.is_file() else sounds / "hum" / "hum0-A.wav"
    label = load(trained).predict(path).label
    assert f"\n{label}\n" in upload(browser, address, path, f"\n{label}\n")
    deadline = time.monotonic() + WAIT
    while not browser.find_elements("css selector", "#map img") and time.monotonic() < deadline:
        time.sleep(0.5)
    assert browser.find_elements("css selector", "#map img")
    assert any(one.name == path.name for one in temporary.rglob("*"))

    large = temporary / "large.wav"
    soundfile.write(large, np.zeros(400_000), 8000)
    assert "exceed the maximum" in upload(browser, address, large, "exceed the maximum")
    asked = {
        json.loads(entry["message"])["message"]["params"]["request"]["url"]
        for entry in browser.get_log("performance")
        if '"Network.requestWillBeSent"' in entry["message"]
    }
    assert asked and all(url.startswith((address, "data:", "blob:", "chrome")) for url in asked)

    for name in (signal.SIGHUP, signal.SIGTERM):  # as a terminal and a supervisor may both do
        program.send_signal(name)
    program.wait(timeout=60)
    assert not any(one.name == path.name for one in temporary.rglob("*"))
