"""A sweep finishes what it began: runs are found again, gone on with, reported, and never repeated."""

import csv
import json
from pathlib import Path

import lightning as L
import pytest
from filelock import FileLock

from esc50.config.names import run_name
from esc50.runs import resume as resuming
from esc50.runs import sweep as sweeping
from esc50.runs import train as run


class StopAt(L.Callback):
    """Ends training, as Ctrl-C would, in the second epoch of one fold."""

    def __init__(self, fold: int):
        self.fold = fold

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.datamodule.split.test[0].fold == self.fold and trainer.current_epoch == 1:
            raise KeyboardInterrupt


def metrics_in(sweep: Path) -> dict[int, dict]:
    """The scores of every finished run by fold, with the time they were written."""
    return {
        (found := json.loads(path.read_text(encoding="utf-8")))["fold"]: found | {"written": path.stat().st_mtime_ns}
        for path in sweep.glob("*/metrics.json")
    }


@pytest.fixture
def settings(tiny) -> tuple[str, ...]:
    return "sweep=folds", "fold=1,2", *tiny, "watch=none", "hydra.sweep.dir=sweep"


def test_a_name_tells_what_was_asked_for_and_nothing_that_has_no_effect():
    name = run_name(["fold=1", "sweep=folds", "seed=3", "augment=strong", "paths.store=/a b/c", "hydra.launcher.n_jobs=2"])
    assert name.startswith("fold_1-seed_3-augment_strong-")
    assert name == run_name(["seed=3", "augment=strong", "fold=1", "watch=none", "paths.store=elsewhere"])
    assert name != run_name(["fold=1", "seed=3", "augment=none"])
    odd = run_name(["data.root=../my sounds/a=b", "model.channels=[8,16]", "x=" + "y" * 300])
    assert set(odd) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") and len(odd) < 100


def test_folds_are_run_officially_and_end_in_a_leaderboard(command, settings, tmp_path):
    ended = command("train.py", *settings, cwd=tmp_path)
    assert ended.status == 0, ended.err
    found = metrics_in(tmp_path / "sweep")
    assert found.keys() == {1, 2} and {one["protocol"] for one in found.values()} == {"official"}
    assert all(one["val_accuracy"] is None for one in found.values())
    with (tmp_path / "sweep" / "leaderboard.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["folds"], row["seeds"]) == ("2", "1")
    assert float(row["accuracy_mean"]) == pytest.approx((found[1]["test_accuracy"] + found[2]["test_accuracy"]) / 2)

    again = command("train.py", *settings[:1], "fold=2,1", *settings[2:], cwd=tmp_path)
    assert again.status == 0
    assert again.out.count("this run is finished, in sweep/fold_") == 2
    assert metrics_in(tmp_path / "sweep") == found


def test_an_interrupted_sweep_goes_on_in_the_middle_of_its_run(command, settings, tmp_path, monkeypatch):
    whole = command("train.py", *settings[:-1], "hydra.sweep.dir=whole", cwd=tmp_path)
    assert whole.status == 0
    with monkeypatch.context() as stopped:
        stopped.setattr(run, "build_watch", lambda cfg: [StopAt(fold=2)])
        ended = command("train.py", *settings, cwd=tmp_path)
    assert ended.status == 130
    assert metrics_in(tmp_path / "sweep").keys() == {1}
    went_on = command("train.py", *settings, cwd=tmp_path)
    assert went_on.status == 0
    assert "this run is finished" in went_on.out and "going on with" in went_on.out
    for fold, metrics in metrics_in(tmp_path / "whole").items():
        assert metrics_in(tmp_path / "sweep")[fold]["test_loss"] == pytest.approx(metrics["test_loss"], rel=1e-5)


def test_a_run_that_another_process_is_at_is_waited_for(tmp_path, monkeypatch, compose):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    other = FileLock(tmp_path / "run" / resuming.LOCK)
    order = []

    def note_and_let_go(message: str, *args) -> None:
        if "another process" in message:
            order.append("waited")
            other.release()

    monkeypatch.setattr(sweeping, "jobs_at_once", lambda: 1)
    monkeypatch.setattr(resuming.log, "info", note_and_let_go)
    monkeypatch.setattr(run, "train", lambda cfg, folder: order.append("trained") or 0.5)
    other.acquire()
    assert sweeping.train_one(compose("model=melcnn"), tmp_path / "run", sweep=tmp_path) == 0.5
    assert order == ["waited", "trained"]


def test_a_run_that_fails_is_named_and_the_others_are_run(command, settings, tmp_path):
    ended = command("train.py", *settings[:1], "fold=1,9,2", *settings[2:], cwd=tmp_path)
    assert ended.status == 1
    assert metrics_in(tmp_path / "sweep").keys() == {1, 2}
    (failure,) = (tmp_path / "sweep").glob("*/failure.txt")
    assert failure.parent.name.startswith("fold_9") and "fold=9" in failure.read_text(encoding="utf-8")
    assert "failed: " in ended.out + ended.err


def test_what_is_wrong_with_every_run_is_one_line_and_status_2(command, settings, tmp_path):
    ended = command("train.py", *settings, "trainer.max_epochs=0", cwd=tmp_path)
    assert ended.status == 2
    assert [line for line in ended.err.splitlines() if line.startswith("error: ")] == [
        "error: trainer.max_epochs=0: wanted a whole number of 1 or more"
    ]


def test_a_folder_with_another_run_is_not_written_over(command, settings, tmp_path):
    assert command("train.py", *settings, cwd=tmp_path).status == 0
    folder = next((tmp_path / "sweep").glob("fold_1*"))
    config = folder / "config.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace("max_epochs: 2", "max_epochs: 7"), encoding="utf-8")
    before = (folder / "metrics.json").read_bytes()
    ended = command("train.py", *settings, cwd=tmp_path)
    assert ended.status == 1
    assert "another trainer.max_epochs" in (folder / "failure.txt").read_text(encoding="utf-8")
    assert (folder / "metrics.json").read_bytes() == before


def test_a_search_needs_validation_clips(shell, tiny, tmp_path):
    ended = shell("train.py", "sweep=optuna", "split=official", *tiny, "hydra.sweep.dir=search", cwd=tmp_path)
    assert ended.status == 2
    assert "split=official has no validation clips" in ended.err


@pytest.mark.slow
def test_a_search_keeps_its_study_maximises_and_goes_on(shell, tiny, tmp_path):
    import sqlite3

    import yaml

    kept = [setting for setting in tiny if not setting.startswith(("loader.batch_size", "optimizer.lr"))]
    search = (
        "sweep=optuna",
        *kept,
        "watch=none",
        "loader.batch_size=choice(6,8)",
        "hydra.sweeper.n_trials=2",
        "hydra.sweep.dir=search",
    )
    for _ in range(2):
        ended = shell("train.py", *search, cwd=tmp_path)
        assert ended.status == 0, ended.err
    with sqlite3.connect(tmp_path / "search" / "study.db") as study:
        assert study.execute("select direction from study_directions").fetchall() == [("MAXIMIZE",)]
        values = [value for (value,) in study.execute("select value from trial_values")]
    assert len(values) == 4
    best = yaml.safe_load((tmp_path / "search" / "optimization_results.yaml").read_text(encoding="utf-8"))
    assert best["best_value"] == max(values)
    assert best["best_params"]["loader.batch_size"] in (6, 8)
    assert all(isinstance(json.loads(path.read_text())["val_accuracy"], float) for path in tmp_path.glob("search/*/metrics.json"))
