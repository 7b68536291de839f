"""metrics.json: what a run was and what it scored."""

import json
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from esc50.errors import DataError
from esc50.files import write_atomically

PACKAGES = ("esc50", "torch", "torchvision", "torchaudio", "lightning", "numpy", "scipy", "soundfile", "soxr")
METRICS = "metrics.json"


def write_metrics(metrics: dict[str, Any], folder: Path) -> None:
    """Write `folder`/metrics.json."""
    with write_atomically(folder / METRICS) as temporary:
        temporary.write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")


def read_metrics(folder: Path) -> dict[str, Any]:
    """Read `folder`/metrics.json. Raises DataError."""
    path = folder / METRICS
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); a finished run leaves one in its folder") from None


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that shape a result."""
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in PACKAGES}


def git_commit() -> str | None:
    """Commit of the source tree, with a + where it has changes; None outside a git checkout."""
    here = Path(__file__).resolve().parent

    def git(*arguments: str) -> str:
        return subprocess.run(("git", *arguments), cwd=here, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
