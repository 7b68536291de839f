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
        ended = shell(
            "train.py", "sweep=folds", "fold=1,2", *tiny, "watch=none", *overrides, f"hydra.sweep.dir={name}", cwd=tmp_path
        )
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
    ended = shell(
        "train.py",
        "trainer=ddp",
        *(part for part in tiny if part != "trainer=cpu"),
        "trainer.accelerator=cpu",
        "loader.batch_size=3",
        "trainer.precision=float32",
        "hydra.run.dir=run",
        cwd=tmp_path,
    )
    assert ended.status == 0, ended.err
    predictions = read_predictions(tmp_path / "run" / "predictions.csv")
    assert len(predictions.filenames) == len(set(predictions.filenames)) == 6
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["test_accuracy"] == (predictions.predicted == predictions.targets).mean()
    assert ended.out.count("test accuracy") == 1
    again = shell("scripts/evaluate.py", "checkpoint=run", "hydra.run.dir=again", cwd=tmp_path)
    assert again.status == 0, again.err
    assert (tmp_path / "again" / "predictions.csv").read_bytes() == (tmp_path / "run" / "predictions.csv").read_bytes()


def test_a_sweep_trains_each_run_in_two_processes_and_goes_on_past_one_that_fails(sweep, shell, tiny, tmp_path):
    two = ("trainer=ddp", "trainer.accelerator=cpu", "loader.batch_size=3", "trainer.precision=float32")
    found = sweep("two", *two)
    assert found.keys() == {1, 2}
    single = shell("train.py", *tiny, "watch=none", "split=official", "fold=1", *two, "hydra.run.dir=single", cwd=tmp_path)
    assert single.status == 0, single.err
    assert (found[1] / "predictions.csv").read_bytes() == (tmp_path / "single" / "predictions.csv").read_bytes()

    before = (found[1] / "metrics.json").stat().st_mtime_ns
    ended = shell(
        "train.py",
        "sweep=folds",
        "fold=1",
        *tiny,
        "watch=none",
        "optimizer.lr=2e-2,1e30",
        *two,
        "hydra.sweep.dir=two",
        cwd=tmp_path,
    )
    assert ended.status == 1
    assert "this run is finished, in two/fold_1" in ended.out
    assert (found[1] / "metrics.json").stat().st_mtime_ns == before
    (failure,) = (tmp_path / "two").glob("*/failure.txt")
    assert "the loss is nan" in failure.read_text(encoding="utf-8")
