"""A flame graph of a training run: py-spy samples the process from outside; where that is forbidden, Python's own profiler
takes its place, so that the training is never lost."""

import cProfile
import datetime
import io
import os
import pstats
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from esc50.files import write_atomically

TRAIN = Path(__file__).resolve().parents[2] / "train.py"
SAMPLES_A_SECOND = 100
HINT = ("py-spy may not look into other processes here ({reason}); in Docker start the container with --cap-add SYS_PTRACE, on"
        " macOS use sudo. Training goes on under cProfile instead")


def profile(overrides: Sequence[str], *, show: Callable[[str], None]) -> int:
    """Train with these settings under a profiler; returns the exit status of the training.

    Leaves `flame.svg` (open it in a browser) or, without the right to sample, `profile.txt` (functions by cumulative time)
    and `profile.prof` (for snakeviz and the like) in a folder under outputs/profile_run, beside the run itself.
    """
    folder = Path("outputs") / "profile_run" / datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S-%f")
    folder.mkdir(parents=True)
    training = [str(TRAIN), *overrides]
    if not any(override.startswith("hydra.run.dir=") for override in overrides):
        training.append(f"hydra.run.dir={folder / 'run'}")
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    spy = shutil.which("py-spy", path=places)
    reason = forbidden(spy)
    if reason is None:
        flame = folder / "flame.svg"
        status = subprocess.run([spy, "record", "--rate", str(SAMPLES_A_SECOND), "--threads", "--subprocesses", "--output",
                                 str(flame), "--", sys.executable, *training], check=False).returncode
        show(f"flame graph: {flame}")
        return status
    show(HINT.format(reason=reason))
    stats = folder / "profile.prof"
    status = subprocess.run([sys.executable, "-m", "esc50.profiling", str(stats), *training], check=False).returncode
    if stats.is_file():
        write_table(stats, folder / "profile.txt")
        show(f"functions by cumulative time: {folder / 'profile.txt'}")
    return status


def forbidden(spy: str | None) -> str | None:
    """Why py-spy cannot sample a process of ours, found out on one that does nothing; None where it can."""
    if spy is None:
        return "it is not installed"
    trial = subprocess.run([spy, "record", "--duration", "1", "--format", "raw", "--output", os.devnull, "--",
                            sys.executable, "-c", "import time; time.sleep(2)"], capture_output=True, text=True, check=False)
    if trial.returncode == 0:
        return None
    lines = [line for line in trial.stderr.splitlines() if line.strip()]
    return next((line for line in lines if "denied" in line.lower() or "error" in line.lower()), "it failed").strip()


def write_table(stats: Path, path: Path, *, num_rows: int = 60) -> None:
    """The functions with the largest cumulative time, as text."""
    text = io.StringIO()
    pstats.Stats(str(stats), stream=text).sort_stats("cumulative").print_stats(num_rows)
    with write_atomically(path) as temporary:
        temporary.write_text(text.getvalue(), encoding="utf-8")


def run_under_cprofile(stats: str, script: str, *arguments: str) -> None:
    """Run a script as if it were started by itself, and leave its profile however it ends (`python -m cProfile` would turn
    every exit status into 0)."""
    sys.argv = [script, *arguments]
    profiler = cProfile.Profile()
    try:
        profiler.runcall(runpy.run_path, script, run_name="__main__")
    finally:
        profiler.dump_stats(stats)


if __name__ == "__main__":
    run_under_cprofile(*sys.argv[1:])
