"""How long until something happens? A config error, the help page, the first training step with a warm store."""

import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lightning as L

from esc50.benchmarks.timing import Measurement, medians

GOALS = {"config error": 1.5, "--help": 1.5, "first training step": 12.0}  # seconds


class FirstStep(L.Callback):
    """Writes the time at which the first training step ended to `path`, then ends training."""

    def __init__(self, path: str):
        self._path = Path(path)

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if not self._path.exists():
            self._path.write_text(repr(time.time()), encoding="utf-8")
        trainer.should_stop = True
        trainer.limit_val_batches = 0


def measure_startup(train: Sequence[str], settings: Sequence[str], *, rounds: int) -> Measurement:
    """Seconds from the start of the process; `train` starts `esc50 train`, `settings` are what makes it train on a warm store."""
    seconds: dict[str, list[float]] = {name: [] for name in GOALS}
    with tempfile.TemporaryDirectory() as folder:
        command = [*train, f"hydra.run.dir={folder}/run"]
        for _ in range(rounds):
            seconds["config error"].append(_seconds([*command, "fold=9"], status=2))
            seconds["--help"].append(_seconds([*train, "--help"], status=0))
            mark = Path(folder) / "first_step"
            mark.unlink(missing_ok=True)
            started = time.time()
            watch = ["+watch.first_step._target_=esc50.benchmarks.startup.FirstStep", f"+watch.first_step.path={mark}"]
            _seconds([*command, *settings, *watch], status=0)
            seconds["first training step"].append(float(mark.read_text(encoding="utf-8")) - started)
    middle = medians(seconds)
    return Measurement(
        title="Start-up",
        rows=tuple((name, value, "s") for name, value in middle.items()),
        ratios={f"startup_{name.strip('-').replace(' ', '_')}_time": value / GOALS[name] for name, value in middle.items()},
        goals={f"startup_{name.strip('-').replace(' ', '_')}_time": 1.0 for name in GOALS},
        raw=seconds,
        note="Hydra composes for the first two; importing torch and lightning takes most of the third",
    )


def _seconds(command: Sequence[str], *, status: int) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode != status:
        raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}: {done.stderr[-500:]}")
    return seconds
