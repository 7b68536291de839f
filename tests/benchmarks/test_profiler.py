"""A profile never costs the training: py-spy where it may, torch's own trace where it may not."""

import subprocess
import sys

import pytest

from esc50.benchmarks import profiler as profiling


@pytest.fixture
def train(tmp_path, monkeypatch):
    """A stand-in for train.py that leaves a mark and ends with status 3."""
    script = tmp_path / "train.py"
    script.write_text("import sys, pathlib; pathlib.Path('trained').write_text(' '.join(sys.argv[1:])); sys.exit(3)\n")
    monkeypatch.setattr(profiling, "TRAIN", (sys.executable, str(script)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_permission_the_training_runs_with_torch_s_trace_and_a_hint(train, monkeypatch):
    monkeypatch.setattr(profiling, "forbidden", lambda spy: profiling.HINT.format(reason="Permission denied"))
    said = []
    assert profiling.profile(["model=melcnn"], show=said.append) == 3
    settings = (train / "trained").read_text().split()
    assert settings[0] == "model=melcnn" and "trainer.profile=trace" in settings
    assert "SYS_PTRACE" in said[0] and "Permission denied" in said[0]


def test_refusal_is_found_out_before_training(tmp_path):
    refusing = tmp_path / "py-spy"
    refusing.write_text("#!/bin/sh\necho 'Error: Permission Denied: Try running again with elevated permissions' >&2\nexit 1\n")
    refusing.chmod(0o755)
    refusal = profiling.forbidden(str(refusing))
    assert "Permission Denied" in refusal and "SYS_PTRACE" in refusal


@pytest.mark.slow
def test_where_py_spy_may_it_leaves_a_flame_graph(train):
    import shutil
    from pathlib import Path

    spy = shutil.which("py-spy", path=str(Path(sys.executable).parent))
    if spy is None or profiling.forbidden(spy) is not None:
        pytest.skip("py-spy may not sample other processes here")
    (train / "train.py").write_text("import time; [sum(range(10**5)) for _ in range(300)]\n")
    assert profiling.profile([], show=lambda text: None) == 0
    flame = next((train / "outputs" / "profile_run").rglob("flame.svg"))
    assert flame.read_text().startswith("<?xml")


def test_overrides_are_passed_on_as_a_list_not_through_a_shell(train, monkeypatch):
    calls: list[list[str]] = []
    monkeypatch.setattr(profiling, "forbidden", lambda spy: None)
    monkeypatch.setattr(
        subprocess, "run", lambda command, **how: calls.append(command) or subprocess.CompletedProcess(command, 0)
    )
    profiling.profile(["data.root=a b;c"], show=lambda text: None)
    assert "data.root=a b;c" in calls[0]
