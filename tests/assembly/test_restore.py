"""A checkpoint calls what it was trained with and nothing else, and says what it misses."""

import sys
import zipfile
from importlib import invalidate_caches

import pytest
import torch

from esc50.assembly.retest import check_calls, restore_task
from esc50.errors import DataError, Esc50Error
from esc50.runs.test import evaluate
from esc50.training.checkpoint_files import find_checkpoint, load_checkpoint

PANEL = {"_target_": "esc50.watch.timing.Timing"}
READERS = """
from __future__ import annotations
from pathlib import Path
from esc50.data import clip
from esc50.data.clip import Clip
from esc50.data.folders import read_folder

def read(root: str, *, absent: NotThere = None) -> tuple[Clip, ...]:
    return read_folder(root)

def dotted(root: str) -> tuple[clip.Clip, ...]:
    return read_folder(root)

def one(root: str) -> Clip:
    return read_folder(root)[0]

def paths(root: str) -> tuple[Path, ...]:
    return ()

def unsaid(root):
    return read_folder(root)
"""


@pytest.fixture
def stored(trained) -> dict:
    return load_checkpoint(find_checkpoint(trained))


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module that Python finds until the test ends."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        invalidate_caches()
        monkeypatch.setitem(sys.modules, name, None)  # what is loaded under this name goes with the test
        del sys.modules[name]

    return write


def with_config(stored: dict, **sections) -> dict:
    return stored | {"esc50": stored["esc50"] | {"config": stored["esc50"]["config"] | sections}}


def refusal(check, stored: dict) -> str:
    with pytest.raises(DataError) as caught:
        check(stored)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("target", "missing"), [("not_here.Net", "not_here"), ("not_here.nets.Net", "not_here"), ("xml.not_here.Net", "xml.not_here")]
)
def test_a_network_whose_module_is_elsewhere_is_named_with_what_to_do(target, missing, stored):
    assert refusal(restore_task, with_config(stored, model={"_target_": target})) == (
        f"the checkpoint names {target} as its network, and there is no module {missing} here; run the command in the folder"
        f" where {missing} lies, or put that folder on PYTHONPATH"
    )


@pytest.mark.parametrize(
    ("section", "what"),
    [({"data": {"_target_": "not_here.read"}}, "its data"), ({"watch": {"mine": PANEL | {"_target_": "not_here.P"}}}, "a panel")],
)
def test_so_are_its_data_and_a_panel(section, what, stored):
    assert f"as {what}, and there is no module not_here here; run the command" in refusal(
        check_calls, with_config(stored, **section)
    )


def test_a_module_that_lacks_another_says_which(stored, module):
    module("half_there", "import not_here_either\n")
    line = refusal(restore_task, with_config(stored, model={"_target_": "half_there.Net"}))
    assert line.endswith("there is no module not_here_either here; half_there imports it; install it")


def test_a_module_that_another_version_had_is_not_looked_for_elsewhere(stored):
    line = refusal(restore_task, with_config(stored, model={"_target_": "esc50.models.gone.Net"}))
    assert "cannot be restored by this one (No module named 'esc50.models.gone')" in line and "PYTHONPATH" not in line


@pytest.mark.parametrize("name", ["read", "dotted"])
def test_a_reader_of_clips_may_keep_its_annotations_as_text(name, stored, module):
    module("readers", READERS)
    check_calls(with_config(stored, data={"_target_": f"readers.{name}", "root": "sounds", "balance": "none"}))


@pytest.mark.parametrize("name", ["one", "paths", "unsaid", "Clip", "nothing"])
def test_what_reads_no_clips_is_refused(name, stored, module):
    module("readers", READERS)
    assert f"readers.{name} as its data, which is none" in refusal(
        check_calls, with_config(stored, data={"_target_": f"readers.{name}"})
    )


def test_a_repeated_test_writes_nothing_that_a_checkpoint_asks_for(stored, tmp_path):
    """The archive of a data set is put where its arguments say, unless nothing may be written."""
    victim, bait = tmp_path / "victim", tmp_path / "bait.zip"
    victim.write_text("mine")
    with zipfile.ZipFile(bait, "w") as archive:
        archive.writestr("ESC-50-master/meta/esc50.csv", "")
    place = str(tmp_path / "place")
    evil = {
        "_target_": "esc50.data.archive.prepare",
        "root": place,
        "creates": place,
        "archive": str(victim),
        "url": bait.as_uri(),
        "balance": "none",
    }
    torch.save(with_config(stored, data=evil), tmp_path / "evil.ckpt")
    with pytest.raises(Esc50Error):
        evaluate(tmp_path / "evil.ckpt", tmp_path / "run")
    assert victim.read_text() == "mine" and not (tmp_path / "place").exists()


def test_arguments_of_another_version_are_named_in_one_line(stored):
    old = stored["esc50"]["config"]["data"] | {"download_to": "data"}
    assert "data.download_to: no such key" in refusal(check_calls, with_config(stored, data=old))
