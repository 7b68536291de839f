"""docs/extend.md does as it says: its files, written into an empty folder, and its commands, one after the other."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from esc50.config.composing import compose
from esc50.config.door import check

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([\w/]+\.(?:py|yaml))`\n\n```(?:python|yaml)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^    (esc50 .+)$", PAGE, re.MULTILINE)
TRAININGS = [command for command in COMMANDS if "train" in command.split() and "model.width=0" not in command]
REFUSAL = re.search(r"^    error: the checkpoint .+$", PAGE, re.MULTILINE).group().strip()
PROBLEMS = re.search(r"^    error: 2 problems.+?\n(?=\n)", PAGE, re.MULTILINE | re.DOTALL).group()


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


def type_in(command: str, folder: Path, **environment: str) -> Ended:
    """Run a line of the page as a shell would, in a folder."""
    program, *arguments = shlex.split(command)
    done = subprocess.run(
        [Path(sys.executable).parent / program, *arguments],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def write_files(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    """The folder in which every training of the page was run."""
    folder = write_files(tmp_path_factory.mktemp("mine"))
    for command in TRAININGS:
        ended = type_in(command, folder)
        assert ended.status == 0 and "test accuracy" in ended.out.splitlines()[-1], (command, ended.err)
    return folder


def test_the_page_has_a_file_and_an_option_for_each_kind():
    listed = re.search(r"holds\n\n    (.+)\n    my_conf/  (.+)\n", PAGE)
    assert {*listed[1].split(), *(f"my_conf/{name}" for name in listed[2].split())} == FILES.keys()
    assert len(TRAININGS) == 4 and len(COMMANDS) == 7


@pytest.mark.parametrize("command", TRAININGS)
def test_every_training_of_the_page_is_allowed(command, tmp_path, monkeypatch):
    monkeypatch.chdir(write_files(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "data" / "synthetic").mkdir(parents=True)
    settings = shlex.split(command)[4:]
    cfg = compose([setting for setting in settings if not setting.startswith("hydra.")], config_dir="my_conf")
    check(cfg)
    assert cfg.model["_target_"] == "mynet.MyNet" and (cfg.trainer.max_epochs, cfg.features.seconds) == (2, 2)


def test_the_problems_of_the_page_are_found_before_anything_is_imported(tmp_path):
    write_files(tmp_path)
    (tmp_path / "mynet.py").write_text("raise SystemExit('imported')\n" + FILES["mynet.py"], encoding="utf-8")
    command = next(command for command in COMMANDS if "model.width=0" in command)
    ended = type_in(command, tmp_path)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == PROBLEMS.replace("\n    ", "\n").removeprefix("    ")


@pytest.mark.slow
def test_the_trainings_leave_their_runs(done, events):
    assert json.loads((done / "outputs/mynet/metrics.json").read_text(encoding="utf-8"))["clips"] == 10
    shown = events(done / "outputs" / "sure" / "tensorboard").scalars
    assert len(shown["sure/share_val"]) == 2 and len(shown["sure/share_test"]) == 1
    (first, second) = sorted((done / "outputs" / "train").iterdir())
    assert "tilt.Tilt" in (first / "config.yaml").read_text(encoding="utf-8")
    rows = (second / "predictions.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].endswith("prob_dog,prob_engine,prob_siren") and len(rows) == 1 + 3


@pytest.mark.slow
def test_the_checkpoint_predicts_and_is_evaluated_there(done):
    predict, evaluate = (next(one for one in COMMANDS if one.startswith(f"esc50 {name} ")) for name in ("predict", "evaluate"))
    ended = type_in(predict, done)
    assert ended.status == 0 and ended.out.count(".wav") == 50, ended.err
    assert type_in(f"{evaluate} hydra.run.dir=again", done).status == 0
    assert (done / "again/predictions.csv").read_bytes() == (done / "outputs/sure/predictions.csv").read_bytes()


@pytest.mark.slow
def test_elsewhere_it_says_in_one_line_which_module_is_missing(done, tmp_path):
    command = f"esc50 predict checkpoint={done}/outputs/mynet input={done}/data/synthetic/audio"
    ended = type_in(command, tmp_path)
    assert (ended.status, ended.out, ended.err) == (2, "", f"{REFUSAL}\n")
    assert type_in(command, tmp_path, PYTHONPATH=str(done)).status == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    ["-m seed=0,1", "-m seed=0,1 hydra/launcher=joblib hydra.launcher.n_jobs=2", "trainer=ddp trainer.accelerator=cpu"],
)
def test_modules_are_found_by_sweeps_launchers_and_several_processes_started_anywhere(settings, done, tmp_path):
    """Beside the folder of options, not where the command is started."""
    command = (
        f"esc50 train --config-dir {done}/my_conf experiment=small data=listed data.root={done}/data/synthetic model=mynet"
        f" watch=none {settings} hydra.run.dir=runs/0 hydra.sweep.dir=runs"
    )
    ended = type_in(command, tmp_path)
    assert ended.status == 0, ended.err
    assert len(list((tmp_path / "runs").glob("*/metrics.json"))) == (2 if "-m" in settings else 1)
    assert not list((tmp_path / "runs").glob("*/failure.txt"))
