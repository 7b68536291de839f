"""The commands as they are typed: what they leave, what they say, how they end."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf

from esc50.results.predictions import read_predictions
from esc50.training.checkpoint_files import load_checkpoint

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ("download", "split", "inspect_data", "precompute", "find_lr", "evaluate")
RECORD = {
    "test_accuracy",
    "val_accuracy",
    "test_loss",
    "test_top5",
    "test_macro_f1",
    "checkpoint",
    "clips",
    "fold",
    "seed",
    "protocol",
    "seconds",
    "versions",
    "git_commit",
}


@pytest.fixture(scope="module")
def finished(shell, tiny, sounds, tmp_path_factory):
    """One whole run in a process of its own, started in another folder than the project's, with a relative data.root."""
    place = tmp_path_factory.mktemp("place")
    shutil.copytree(sounds, place / "my sounds")
    ended = shell("train.py", *tiny, "data.root='my sounds'", "hydra.run.dir=runs/first", cwd=place)
    assert ended.status == 0, ended.err
    return place / "runs" / "first", ended


def metrics_of(folder: Path) -> dict:
    return json.loads((folder / "metrics.json").read_text(encoding="utf-8"))


# ---------------------------------------------------------------------- a whole run


def test_a_run_leaves_every_file(finished):
    folder, _ = finished
    left = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert left >= {"config.yaml", "train.log", "split.csv", "metrics.json", "predictions.csv", "checkpoints/last.ckpt"}
    assert len([name for name in left if name.startswith("tensorboard/events.out.tfevents.")]) >= 1
    assert not [name for name in left if ".part" in name]


def test_nothing_is_written_into_the_data(finished, sounds):
    folder, _ = finished
    data = folder.parents[1] / "my sounds"
    assert sorted(path.relative_to(data) for path in data.rglob("*")) == sorted(
        path.relative_to(sounds) for path in sounds.rglob("*")
    )


def test_the_metrics_say_what_was_run_and_what_it_scored(finished):
    folder, _ = finished
    metrics = metrics_of(folder)
    assert metrics.keys() >= RECORD
    assert (metrics["clips"], metrics["fold"], metrics["seed"], metrics["protocol"]) == (6, 5, 0, "holdout")
    assert all(0 <= metrics[key] <= 1 for key in ("test_accuracy", "val_accuracy", "test_top5", "test_macro_f1"))
    assert metrics["test_loss"] > 0 and metrics["seconds"] > 0
    assert (folder / metrics["checkpoint"]).is_file() and not Path(metrics["checkpoint"]).is_absolute()
    assert metrics["versions"]["torch"] == metadata.version("torch")
    in_git = (ROOT / ".git").exists()
    assert metrics["git_commit"] is None or (in_git and len(metrics["git_commit"].rstrip("+")) == 40)


def test_the_predictions_have_exactly_the_promised_columns(finished):
    folder, _ = finished
    with (folder / "predictions.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["filename", "fold", "target", "predicted", "prob_hiss", "prob_hum", "prob_whistle"]
    assert len(rows) == 6
    for filename, fold, target, predicted, *probs in rows:
        probs = [float(prob) for prob in probs]
        assert filename.split("/")[0] == ("hiss", "hum", "whistle")[int(target)]
        assert fold == "5"
        assert int(predicted) == probs.index(max(probs))
        assert sum(probs) == pytest.approx(1)


def test_the_stored_configuration_is_resolved_and_names_no_other_place(finished):
    folder, _ = finished
    text = (folder / "config.yaml").read_text(encoding="utf-8")
    assert "${" not in text and "???" not in text
    cfg = OmegaConf.create(text)
    assert (cfg.trainer.precision, cfg.data.root) == (
        load_checkpoint(folder / "checkpoints" / "last.ckpt")["esc50"]["config"]["trainer"]["precision"],
        "my sounds",
    )
    assert cfg.trainer.precision in ("float32", "bfloat16")


def test_the_last_line_names_accuracy_clips_fold_and_folder_and_the_log_has_it_too(finished):
    folder, ended = finished
    last = ended.out.splitlines()[-1]
    assert f"test accuracy {metrics_of(folder)['test_accuracy']:.4f} on 6 clips, fold 5, run folder {folder}" in last
    assert "test accuracy" in (folder / "train.log").read_text(encoding="utf-8").splitlines()[-1]


def test_a_good_run_says_nothing_but_progress_on_stderr(finished):
    _, ended = finished
    lines = [line for line in ended.err.replace("\r", "\n").splitlines() if line.strip()]
    assert [line for line in lines if "%|" not in line and "/s" not in line] == []
    assert "batch/s" in ended.err and "<" in ended.err  # what was done, and the estimate of what is left


# ---------------------------------------------------------------------- evaluate


def test_evaluation_takes_a_file_with_an_equals_sign_anywhere(finished, command, sounds, tmp_path):
    folder, _ = finished
    shutil.copy(folder / metrics_of(folder)["checkpoint"], tmp_path / "epoch=1, best.ckpt")
    ended = command(
        "scripts/evaluate.py", "checkpoint='epoch=1, best.ckpt'", f"data.root={sounds}", "hydra.run.dir=again", cwd=tmp_path
    )
    assert ended.status == 0, ended.err
    assert (tmp_path / "again" / "predictions.csv").read_bytes() == (folder / "predictions.csv").read_bytes()
    assert metrics_of(tmp_path / "again")["test_loss"] == metrics_of(folder)["test_loss"]
    assert "test accuracy" in ended.out.splitlines()[-1]


def test_evaluation_of_a_run_folder_has_its_own_run_folder(finished, command):
    folder, _ = finished
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    ended = command("scripts/evaluate.py", "checkpoint=runs/first", cwd=folder.parents[1])
    assert ended.status == 0, ended.err
    (made,) = (folder.parents[1] / "outputs" / "evaluate").iterdir()
    assert (made / "predictions.csv").read_bytes() == (folder / "predictions.csv").read_bytes()
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_evaluation_without_the_data_says_where_it_was(finished, command, tmp_path):
    folder, _ = finished
    ended = command("scripts/evaluate.py", f"checkpoint={folder}", cwd=tmp_path)
    assert (ended.status, ended.err) == (2, "error: data.root=my sounds: no such folder\n")


@pytest.mark.slow
def test_evaluation_in_a_new_process_gives_the_same_bytes(finished, shell, sounds, tmp_path):
    folder, _ = finished
    ended = shell("scripts/evaluate.py", f"checkpoint={folder}", f"data.root={sounds}", "hydra.run.dir=again", cwd=tmp_path)
    assert ended.status == 0, ended.err
    assert (tmp_path / "again" / "predictions.csv").read_bytes() == (folder / "predictions.csv").read_bytes()


# ---------------------------------------------------------------------- mistakes


def one_line_each(ended, status=2) -> list[str]:
    assert ended.status == status
    assert "Traceback" not in ended.err
    lines = ended.err.splitlines()
    assert lines[0].startswith("error: ")
    return lines


def test_mistakes_end_with_status_2_and_one_line_each_in_every_command(shell, tmp_path):
    for script in ("train.py", *(f"scripts/{name}.py" for name in SCRIPTS if name != "evaluate")):
        ended = shell(script, "data=folder", "data.root=nowhere", "fold=6", "features.n_mels=0", cwd=tmp_path)
        lines = one_line_each(ended)
        assert lines[0] == "error: 3 problems in the configuration:"
        assert sorted(lines[1:]) == [
            "  data.root=nowhere: no such folder",
            "  features.n_mels=0: wanted a whole number of 1 or more",
            "  fold=6: wanted a whole number from 1 to 5",
        ]
    assert one_line_each(shell("scripts/evaluate.py", cwd=tmp_path)) == [
        "error: checkpoint needs a value; write checkpoint=a run folder or checkpoint file"
    ]


def test_being_told_of_a_mistake_does_not_wait_for_torch(tmp_path):
    code = (
        "import runpy, sys\nsys.argv = sys.argv[1:]\n"
        "try:\n    runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit as end:\n    print('ended', end.code)\n"
        "print(sorted({'torch', 'numpy', 'lightning', 'librosa'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "train.py"), "fold=6"], cwd=tmp_path, text=True, capture_output=True, check=True
    )
    assert done.stdout.splitlines() == ["ended 2", "[]"]


def test_a_broken_recording_is_named_in_one_line(command, tiny, sounds, tmp_path):
    root = tmp_path / "sounds"
    shutil.copytree(sounds, root)
    (root / "hum" / "hum3-A.wav").write_bytes(b"")
    ended = command("train.py", *tiny, "watch=none", f"data.root={root}", cwd=tmp_path)
    (error,) = (line for line in ended.err.replace("\r", "\n").splitlines() if "error:" in line)
    assert ended.status == 2
    assert str(root / "hum" / "hum3-A.wav") in error and "1 of 30 clips" in error
    assert "Traceback" not in ended.err


def test_odd_names_of_classes_go_through_the_whole_run(command, tiny, sounds, tmp_path):
    root, odd = tmp_path / "sounds", {"hum": 'a, "b" = ü', "hiss": "-x", "whistle": "✓ 1"}
    for plain, name in odd.items():
        shutil.copytree(sounds / plain, root / name)
    ended = command("train.py", *tiny, f"data.root={root}", "hydra.run.dir='run, 1=2'", cwd=tmp_path)
    assert ended.status == 0, ended.err
    assert read_predictions(tmp_path / "run, 1=2" / "predictions.csv").class_names == tuple(sorted(odd.values()))
    ended = command("scripts/evaluate.py", "checkpoint='run, 1=2'", "hydra.run.dir=again", cwd=tmp_path)
    assert ended.status == 0, ended.err


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names themselves")
def test_a_name_that_is_not_in_utf_8_is_refused_before_anything_is_trained(command, tiny, sounds, tmp_path):
    root = tmp_path / "sounds"
    shutil.copytree(sounds, root)
    (root / "hum").rename(os.fsdecode(os.fsencode(root) + b"/caf\xe9"))
    (line,) = one_line_each(command("train.py", *tiny, f"data.root={root}", cwd=tmp_path))
    assert "the name is not in UTF-8; rename the file or folder" in line


def test_a_folder_inside_the_data_is_refused_as_a_run_folder(command, tiny, sounds, tmp_path):
    root = tmp_path / "sounds"
    shutil.copytree(sounds, root)
    ended = command("train.py", *tiny, f"data.root={root}", f"hydra.run.dir={root}/run", cwd=tmp_path)
    assert one_line_each(ended) == [
        f"error: hydra.run.dir={root}/run: lies inside data.root={root}, where nothing derived may"
        " be written; choose another hydra.run.dir"
    ]


def test_a_place_that_cannot_be_written_to_is_named_in_one_line(command, tiny, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    ended = command("train.py", *tiny, f"paths.store={tmp_path}/file/store", cwd=tmp_path)
    (line,) = one_line_each(ended)
    assert f"{tmp_path}/file/store" in line and "Not a directory" in line


def test_a_run_that_diverges_ends_with_status_1_and_one_line(command, tiny, tmp_path):
    ended = command(
        "train.py", *tiny, "watch=none", "optimizer.lr=1e30", "schedule=constant", "trainer.precision=float32", cwd=tmp_path
    )
    assert ended.status == 1
    (error,) = (line for line in ended.err.replace("\r", "\n").splitlines() if line.startswith("error: "))
    assert "the loss is nan" in error and "Traceback" not in ended.err


# ---------------------------------------------------------------------- run folders


def test_runs_started_at_once_get_folders_of_their_own(tmp_path):
    """Folders are given before the configuration is checked, so refused runs show it as well."""
    runs = [
        subprocess.Popen([sys.executable, str(ROOT / "train.py"), "fold=6"], cwd=tmp_path, stderr=subprocess.DEVNULL)
        for _ in range(4)
    ]
    assert [run.wait() for run in runs] == [2] * 4
    assert len(list((tmp_path / "outputs" / "train").iterdir())) == 4


def test_a_multirun_gives_every_job_its_whole_record(command, tiny, tmp_path):
    ended = command(
        "train.py", "-m", *tiny, "watch=none", "seed=1,2", "trainer.max_epochs=1", "hydra.sweep.dir=sweep", cwd=tmp_path
    )
    assert ended.status == 0, ended.err
    for job, seed in (("0", 1), ("1", 2)):
        folder = tmp_path / "sweep" / job
        assert metrics_of(folder)["seed"] == seed
        assert OmegaConf.load(folder / "config.yaml").seed == seed
        assert "test accuracy" in (folder / "train.log").read_text(encoding="utf-8")
        assert (folder / "predictions.csv").is_file() and (folder / "checkpoints" / "last.ckpt").is_file()
    assert len([line for line in ended.out.splitlines() if "test accuracy" in line]) == 2


def test_a_resume_by_command_goes_on_in_the_same_folder(finished, command, tiny, sounds, tmp_path):
    folder, _ = finished
    shutil.copytree(folder, tmp_path / "run")
    ended = command(
        "train.py",
        *tiny,
        "watch=none",
        f"data.root={sounds}",
        "trainer.max_epochs=3",
        "resume=run",
        "hydra.run.dir=run",
        cwd=tmp_path,
    )
    assert ended.status == 0, ended.err
    assert load_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt")["epoch"] == 2


# ---------------------------------------------------------------------- the other scripts


def test_each_script_writes_into_its_own_run_folder(command, tiny, tmp_path):
    leaves = {
        "download": set(),
        "split": {"split.csv"},
        "precompute": set(),
        "inspect": {"checklist.json", "data_page.png", "tensorboard"},
        "find_lr": {"lr_finder.png", "lr_finder.json", "tensorboard"},
    }
    for name, files in leaves.items():
        ended = command(f"scripts/{'inspect_data' if name == 'inspect' else name}.py", *tiny, cwd=tmp_path)
        assert ended.status == 0, ended.err
        (folder,) = (tmp_path / "outputs" / name).iterdir()
        assert {path.name for path in folder.iterdir()} == {".hydra", f"{name}.log", *files}
    assert {path.name for path in tmp_path.iterdir()} == {"outputs"}


def test_the_checklist_of_a_table_alone_is_shown_in_the_terminal(command, shared, tmp_path):
    ended = command(
        "scripts/inspect_data.py", "data=esc50", f"data.root={shared / 'esc50_meta'}", "hydra.run.dir=run", cwd=tmp_path
    )
    assert ended.status == 0, ended.err
    checklist = json.loads((tmp_path / "run" / "checklist.json").read_text(encoding="utf-8"))
    assert set(checklist["sources_in_two_folds"]) == {"131943", "134049", "209698", "234879"}
    assert "2000 clips in 50 classes" in ended.out and "131943 (2, 3)" in ended.out


def test_the_learning_rate_range_test_prints_its_suggestion(command, tiny, tmp_path):
    ended = command("scripts/find_lr.py", *tiny, "hydra.run.dir=run", cwd=tmp_path)
    suggestion = json.loads((tmp_path / "run" / "lr_finder.json").read_text(encoding="utf-8"))["suggestion"]
    assert f"suggestion: optimizer.lr={suggestion:.2g}" in ended.out.splitlines()[-1]


# ---------------------------------------------------------------------- signals


def start(overrides, *, cwd: Path, until: str) -> subprocess.Popen:
    """A run in a process of its own, once its run folder `run` holds the file `until`."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "train.py"), *overrides, "hydra.run.dir=run"],
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 120
    while not (cwd / "run" / until).exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    return process


@pytest.mark.slow
def test_a_run_killed_at_any_moment_can_be_gone_on_with(tiny, shell, tmp_path):
    """Killed again and again, it leaves a whole checkpoint each time and ends where an undisturbed run does."""
    overrides = (*tiny, "trainer.max_epochs=40", "augment=mixup")
    undisturbed = shell("train.py", *overrides, "hydra.run.dir=undisturbed", cwd=tmp_path)
    assert undisturbed.status == 0, undisturbed.err
    for pause in (0.0, 0.21, 0.37):
        process = start([*overrides, *(["resume=run"] if pause else [])], cwd=tmp_path, until="checkpoints/last.ckpt")
        if pause:  # the file is there from before: wait for the training
            time.sleep(6)
        time.sleep(pause)
        process.kill()
        process.communicate()
        load_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt")
    ended = shell("train.py", *overrides, "resume=run", "hydra.run.dir=run", cwd=tmp_path)
    assert ended.status == 0, ended.err
    for name in ("predictions.csv", "split.csv"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes()
    now, then = (load_checkpoint(tmp_path / name / "checkpoints" / "last.ckpt") for name in ("run", "undisturbed"))
    assert all(torch.equal(now["state_dict"][key], value) for key, value in then["state_dict"].items())


@pytest.mark.slow
def test_ctrl_c_ends_with_a_line_that_says_how_to_go_on(tiny, tmp_path):
    process = start([*tiny, "watch=none", "trainer.max_epochs=5000"], cwd=tmp_path, until="checkpoints/last.ckpt")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == f"interrupted; resume={tmp_path / 'run'} goes on from the last whole epoch"
    assert "Traceback" not in err
