"""What several tests need: the real recordings beside the project, small sounds, the project's own configuration."""

import contextlib
import io
import logging
import os
import runpy
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

# Networks this small lose time to a second thread; it must be known before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
RATE, SECONDS, CLIPS_A_CLASS = 8000, 0.5, 10
CLASSES = ("hiss", "hum", "whistle")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real data beside the project; tests that ask for it are skipped where it is absent."""
    if not (SHARED / "esc10").is_dir():
        pytest.skip("the folder ../shared with real recordings is not here")
    return SHARED


def write_sounds(root: Path) -> Path:
    """A folder a class, ten half seconds each: hiss (noise), hum (low tones) and whistle (high tones)."""
    import soundfile

    rng = np.random.default_rng(0)
    time = np.arange(int(RATE * SECONDS)) / RATE
    for category in CLASSES:
        (root / category).mkdir(parents=True)
        for number in range(CLIPS_A_CLASS):
            noise = rng.normal(size=len(time)).astype(np.float32)
            low, high = (150, 400) if category == "hum" else (1500, 3000)
            tone = np.sin(2 * np.pi * rng.uniform(low, high) * time)
            sound = 0.1 * noise if category == "hiss" else 0.3 * tone + 0.02 * noise
            soundfile.write(root / category / f"{category}{number}-A.wav", sound, RATE)
    return root


@pytest.fixture(scope="session")
def sounds(tmp_path_factory) -> Path:
    """Thirty clips of three classes, one folder a class; not to be written into."""
    return write_sounds(tmp_path_factory.mktemp("sounds") / "sounds")


@pytest.fixture(scope="session")
def tiny(sounds, tmp_path_factory) -> tuple[str, ...]:
    """Overrides that make a run of a second out of these sounds: three batches an epoch, two epochs."""
    return (
        f"data.root={sounds}",
        f"paths.data={tmp_path_factory.mktemp('derived')}",
        "data=folder",
        "trainer=cpu",
        f"features.seconds={SECONDS}",
        f"features.sample_rate={RATE}",
        f"features.f_max={RATE / 2}",
        "features.n_fft=512",
        "features.win_length=400",
        "features.hop_length=160",
        "features.n_mels=32",
        "augment=none",
        "trainer.max_epochs=2",
        "model.channels=[8,16]",
        "loader.batch_size=6",
        "optimizer.lr=2e-2",
    )


@pytest.fixture(scope="session")
def compose() -> Callable:
    """Compose the project's own configuration from overrides, as a command line would."""
    import hydra

    def composed(*overrides: str, name: str = "config"):
        with hydra.initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            return hydra.compose(name, list(overrides))

    return composed


@pytest.fixture(scope="session")
def trained(compose, tiny, tmp_path_factory) -> Path:
    """The folder of a finished run on these sounds; not to be written into."""
    from esc50.runs import train as run

    folder = tmp_path_factory.mktemp("trained")
    run.train(compose(*tiny, "watch=none"), folder)
    return folder


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


@pytest.fixture(scope="session")
def shell() -> Callable[..., Ended]:
    """Run one of the project's commands in a process of its own, in a folder `cwd`."""

    def run(script: str, *overrides: str, cwd: Path, timeout: float = 300) -> Ended:
        done = subprocess.run(
            [sys.executable, str(ROOT / script), *overrides],
            cwd=cwd,
            timeout=timeout,
            text=True,
            capture_output=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return run


@contextlib.contextmanager
def _log_restored() -> Iterator[None]:
    """Hydra gives the root logger handlers that write to streams and files which end with the command."""
    loggers = [
        logging.getLogger(),
        *(logger for logger in map(logging.getLogger, logging.root.manager.loggerDict) if logger.level),
    ]
    before = [(logger, logger.level, list(logger.handlers)) for logger in loggers]
    try:
        yield
    finally:
        for handler in set(logging.getLogger().handlers) - set(before[0][2]):
            handler.close()
        for logger, level, handlers in before:
            logger.setLevel(level)
            logger.handlers[:] = handlers


@pytest.fixture(scope="session")
def command() -> Callable[..., Ended]:
    """The same command run within this process, which has everything heavy imported already."""

    def run(script: str, *overrides: str, cwd: Path) -> Ended:
        out, err, status = io.StringIO(), io.StringIO(), 0
        argv, place = sys.argv, Path.cwd()
        try:
            sys.argv = [str(ROOT / script), *overrides]
            os.chdir(cwd)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _log_restored(), warnings.catch_warnings():
                runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as end:
            status = end.code or 0
        finally:
            sys.argv = argv
            os.chdir(place)
        return Ended(status, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session", autouse=True)
def event_files_in_order() -> None:
    """Files of events that began in one second are read in the order of the running number at the end of their names, as
    text: 10 before 9. From a million on, none of a session gets more digits."""
    from tensorboard.summary.writer import event_file_writer

    event_file_writer._global_uid = event_file_writer.AtomicCounter(10**6)


@pytest.fixture(scope="session")
def events() -> Callable[[Path], SimpleNamespace]:
    """What TensorBoard would show of a folder of events: `scalars` as lists of (step, value), and all else by tag."""

    def read(folder: Path) -> SimpleNamespace:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        read_all = {"scalars": 0, "images": 0, "tensors": 0, "audio": 0, "histograms": 0}
        content = EventAccumulator(str(folder), size_guidance=read_all).Reload()
        tags = content.Tags()
        return SimpleNamespace(
            content=content,
            tags=tags,
            scalars={tag: [(event.step, event.value) for event in content.Scalars(tag)] for tag in tags["scalars"]},
        )

    return read


@pytest.fixture
def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def browser():
    """Chromium without a window, driven by selenium; its log of requests is kept."""
    chromium, driver = shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("Chromium and its driver are not installed")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,2000"):
        options.add_argument(argument)
    opened = webdriver.Chrome(options=options, service=Service(driver))
    yield opened
    opened.quit()
