"""TensorBoard over a finished run, in a real browser: the curves are on the page."""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from esc50.runs import train as run

WAIT = 120  # seconds, for a page or a server on a busy machine

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def wait_for_tags(url: str, server: subprocess.Popen) -> None:
    """Until the server has read the run: a page shows what was known when it was loaded."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            with urllib.request.urlopen(f"{url}data/plugin/scalars/tags", timeout=10) as answer:
                if b"loss/val" in answer.read():
                    return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass  # not up yet
        assert time.monotonic() < deadline and server.poll() is None, "TensorBoard does not answer"
        time.sleep(0.5)


@pytest.fixture
def address(compose, tiny, free_port, tmp_path):
    """Where TensorBoard shows a run of a second."""
    run.train(compose(*tiny, "watch=default"), tmp_path / "run")
    server = subprocess.Popen(
        [
            str(Path(sys.executable).with_name("tensorboard")),
            "--logdir",
            str(tmp_path),
            "--port",
            str(free_port),
            "--host",
            "127.0.0.1",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{free_port}/"
    wait_for_tags(url, server)
    yield url
    server.terminate()
    server.wait(timeout=30)


def test_the_scalar_tags_of_a_finished_run_are_on_the_page(browser, address):
    wanted = {"loss/val", "lr/head", "grad/norm"}
    browser.get(f"{address}?tagFilter=^(loss/val|lr/head|grad/norm)$#timeseries")
    text, found = "", set()
    deadline = time.monotonic() + WAIT
    while found != wanted and time.monotonic() < deadline:
        time.sleep(0.5)
        text = "".join(browser.find_element("tag name", "body").text.split())  # the page breaks long tags before a slash
        found = {tag for tag in wanted if tag in text}
    assert found == wanted
    assert "run/tensorboard" in text
