"""metrics.json and what it says about the program that wrote it."""

import json
import platform
import subprocess
from importlib import metadata

import pytest

from esc50.errors import DataError
from esc50.results import record
from esc50.results.record import git_commit, read_metrics, versions, write_metrics


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """The module as if it lay in a folder of no checkout."""
    monkeypatch.setattr(record, "__file__", str(tmp_path / "record.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):  # set where tests run from a git hook
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def git(folder, *arguments: str) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(("git", *identity, *arguments), cwd=folder, check=True, capture_output=True, text=True).stdout


def test_versions_are_those_installed():
    found = versions()
    assert found["python"] == platform.python_version()
    assert {"esc50", "torch", "torchvision", "torchaudio", "lightning", "numpy", "scipy", "soundfile", "soxr"} < set(found)
    assert found["torch"] == metadata.version("torch")
    json.dumps(found)


def test_outside_a_checkout_there_is_no_commit(elsewhere):
    assert git_commit() is None


def test_without_git_there_is_no_commit(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_commit() is None


def test_the_commit_is_named_and_marked_where_files_changed(elsewhere):
    git(elsewhere, "init")
    (elsewhere / "a").write_text("1")
    git(elsewhere, "add", "a")
    git(elsewhere, "commit", "-m", "first")
    commit = git(elsewhere, "rev-parse", "HEAD").strip()
    assert len(commit) == 40
    (elsewhere / "untracked").write_text("")
    assert git_commit() == commit
    (elsewhere / "a").write_text("2")
    assert git_commit() == commit + "+"


def test_metrics_read_back_as_written(tmp_path):
    metrics = {
        "test_accuracy": 0.1 + 0.2,
        "val_accuracy": None,
        "checkpoint": "checkpoints/last.ckpt",
        "clips": 80,
        "versions": {"torch": "2"},
    }
    write_metrics(metrics, tmp_path / "new")
    assert read_metrics(tmp_path / "new") == metrics
    assert list(json.loads((tmp_path / "new" / "metrics.json").read_text())) == list(metrics)


@pytest.mark.parametrize("content", [None, "", '{"test_accuracy": 0.'])
def test_missing_or_cut_metrics_are_one_line(tmp_path, content):
    if content is not None:
        (tmp_path / "metrics.json").write_text(content)
    with pytest.raises(DataError, match=r"metrics\.json cannot be read .* leaves one in its folder") as refusal:
        read_metrics(tmp_path)
    assert "\n" not in str(refusal.value)
