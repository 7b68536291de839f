"""The end of a sweep: what came out, as a table, and what failed."""

import logging
import sys
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from esc50.config.names import typed
from esc50.errors import ConfigError, DataError, TrainingError

log = logging.getLogger(__name__)


class SweepSummary(Callback):
    """Writes leaderboard.md, .csv and .png into the sweep's folder and names the runs that failed; any failure makes the
    exit status 1. Hydra calls it at the end of every multirun."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        Path(config.hydra.sweep.dir).mkdir(parents=True, exist_ok=True)  # optuna keeps its study there

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        from esc50.results.record import METRICS
        from esc50.runs.sweep import FAILURE

        sweep = Path(config.hydra.sweep.dir)
        self._write_leaderboard(sweep, command=typed())
        failures = {path.parent: path.read_text(encoding="utf-8").strip() for path in sorted(sweep.glob(f"*/{FAILURE}"))}
        if not failures:
            return
        if len(set(failures.values())) == 1 and not any(sweep.glob(f"*/{METRICS}")):
            sys.stderr.write(f"error: {next(iter(failures.values()))}\n")
            sys.exit(ConfigError.exit_status)
        for folder, reason in failures.items():
            log.error("failed: %s: %s", folder, reason)
        log.error("%d runs failed; repeat the command with hydra.sweep.dir=%s to run these again", len(failures), sweep)
        sys.exit(TrainingError.exit_status)

    @staticmethod
    def _write_leaderboard(sweep: Path, *, command: str) -> None:
        from esc50.results import tables

        try:
            log.info("\n%s", tables.leaderboard([sweep], sweep, command=command))
        except DataError as error:  # nothing was tested, or the runs do not belong into one table
            log.warning("no leaderboard: %s", error)
