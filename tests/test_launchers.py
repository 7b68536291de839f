"""Several runs at once, and one run in several processes: the same results as one after the other."""

import json
from pathlib import Path

import pytest

from esc50.results.predictions import read_predictions

pytestmark = pytest.mark.slow


def finished(sweep: Path) -> dict[int, Path]:
    """Run folders by fold."""
    return {json.loads(path.read_text(encoding="utf-8"))["fold"]: path.parent for path in sweep.glob("*/metrics.json")}


@pytest.fixture
def sweep(shell, tiny, tmp_path):
    def run(name: str, *overrides: str) -> dict[int, Path]:
        ended = shell("train.py", "sweep=folds", "fold=1,2", *tiny, "watch=none", *overrides, f"hydra.sweep.dir={name}",
                      cwd=tmp_path)
        assert ended.status == 0, ended.err
        assert (tmp_path / name / "leaderboard.csv").is_file()
        return finished(tmp_path / name)

    return run


@pytest.mark.parametrize("launcher", [("joblib", "hydra.launcher.n_jobs=2", "loader.num_workers=1"), ("submitit_local",)])
def test_runs_started_together_score_as_runs_one_after_the_other(launcher, sweep):
    name, *settings = launcher
    together, alone = sweep("together", f"hydra/launcher={name}", *settings), sweep("alone")
    assert together.keys() == alone.keys() == {1, 2}
    for fold, folder in alone.items():
        assert (together[fold] / "predictions.csv").read_bytes() == (folder / "predictions.csv").read_bytes()


def test_two_processes_train_one_network_that_is_tested_once_over_all_clips(shell, tiny, tmp_path):
    ended = shell("train.py", "trainer=ddp", *(part for part in tiny if part != "trainer=cpu"), "trainer.accelerator=cpu",
                  "loader.batch_size=3", "trainer.precision=float32", "hydra.run.dir=run", cwd=tmp_path)
    assert ended.status == 0, ended.err
    predictions = read_predictions(tmp_path / "run" / "predictions.csv")
    assert len(predictions.filenames) == len(set(predictions.filenames)) == 6
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["test_accuracy"] == (predictions.predicted == predictions.targets).mean()
    assert ended.out.count("test accuracy") == 1
    again = shell("scripts/evaluate.py", "checkpoint=run", "hydra.run.dir=again", cwd=tmp_path)
    assert again.status == 0, again.err
    assert (tmp_path / "again" / "predictions.csv").read_bytes() == (tmp_path / "run" / "predictions.csv").read_bytes()
