"""A flame graph of a training run: py-spy samples the process from outside; where that is forbidden, torch's own trace of a
few steps takes its place, so that the training is never lost."""

import datetime
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from esc50.errors import missing_extra

TRAIN = (sys.executable, "-c", "from esc50.commands.cli import run; run('train')")  # `esc50 train`, wherever it is installed
SAMPLES_A_SECOND = 100
HINT = (
    "py-spy may not look into other processes here ({reason}); in Docker start the container with --cap-add SYS_PTRACE, on"
    " macOS use sudo"
)


def profile(overrides: Sequence[str], *, show: Callable[[str], None]) -> int:
    """Train with these settings under a profiler; returns the exit status of the training.

    Leaves `flame.svg` (open it in a browser) in a folder under outputs/profile_run, beside the run itself, in which
    `parts.csv` has the seconds of every part; without the right to sample the run has `trace.json` instead of the graph.
    """
    folder = Path("outputs") / "profile_run" / datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S-%f")
    folder.mkdir(parents=True)
    training = [*TRAIN, *overrides]
    if not any(override.startswith("hydra.run.dir=") for override in overrides):
        training.append(f"hydra.run.dir={folder / 'run'}")
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    spy = shutil.which("py-spy", path=places)
    refusal = missing_extra("a flame graph", "py-spy") if spy is None else forbidden(spy)
    if spy is None or refusal is not None:
        show(f"{refusal}. Training goes on with torch's own trace instead")
        return subprocess.run([*training, "trainer.profile=trace"], check=False).returncode
    flame = folder / "flame.svg"
    status = subprocess.run(
        [
            spy,
            "record",
            "--rate",
            str(SAMPLES_A_SECOND),
            "--threads",
            "--subprocesses",
            "--output",
            str(flame),
            "--",
            *training,
            "trainer.profile=parts",
        ],
        check=False,
    ).returncode
    show(f"flame graph: {flame}")
    return status


def forbidden(spy: str) -> str | None:
    """Why py-spy cannot sample a process of ours, found out on one that does nothing, and what to do; None where it can."""
    trial = subprocess.run(
        [
            spy,
            "record",
            "--duration",
            "1",
            "--format",
            "raw",
            "--output",
            os.devnull,
            "--",
            sys.executable,
            "-c",
            "import time; time.sleep(2)",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if trial.returncode == 0:
        return None
    lines = [line for line in trial.stderr.splitlines() if line.strip()]
    reason = next((line for line in lines if "denied" in line.lower() or "error" in line.lower()), "it failed").strip()
    return HINT.format(reason=reason)
