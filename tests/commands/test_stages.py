"""The stages on their own: each leaves what it promises and says what it found."""

import csv
import json
import logging
import shutil

import numpy as np
import pytest
import torch

from esc50.assembly.task import build_task
from esc50.commands import download, inspect, precompute, split
from esc50.errors import DataError
from esc50.runs import find_lr as learning_rate

LEAKING = {"131943": [2, 3], "134049": [2, 3], "209698": [4, 5], "234879": [4, 5]}  # folds by source, as ESC-50 is known for


@pytest.fixture(scope="module")
def config(compose, tiny):
    return lambda *overrides: compose(*tiny, *overrides)


@pytest.fixture(autouse=True)
def said(caplog):
    caplog.set_level(logging.INFO)
    return caplog


@pytest.fixture
def ran(monkeypatch, capsys):
    """Run a command's own function in a run folder of ours; returns what it showed."""

    def run(module, cfg, folder=None) -> str:
        if folder is not None:
            folder.mkdir(exist_ok=True)
            monkeypatch.setattr(module, "run_folder", lambda: folder)
        capsys.readouterr()
        module.main.__wrapped__(cfg)
        return capsys.readouterr().out

    return run


def picture(path) -> np.ndarray:
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def shows_something(path) -> bool:
    """Neither white nor of one colour: more than one pixel in fifty is drawn upon."""
    pixels = picture(path)
    background = pixels[0, 0]
    return (pixels != background).any(axis=2).mean() > 0.02 and len(np.unique(pixels.reshape(-1, 3), axis=0)) > 10


def test_download_says_what_is_there(config, sounds, said, ran):
    ran(download, config())
    assert said.messages[-1] == f"30 clips of 3 classes at {sounds}"


def test_download_writes_the_synthetic_data_set_once(compose, tmp_path, said, ran):
    cfg = compose(
        "data=synthetic",
        f"paths.data={tmp_path}",
        "data.num_classes=2",
        "data.num_clips=10",
        "data.seconds=0.25",
        "data.sample_rate=8000",
    )
    ran(download, cfg)
    assert said.messages[-1] == f"10 clips of 2 classes at {tmp_path / 'synthetic'}"
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert sum(path.suffix == ".wav" for path in written) == 10
    ran(download, cfg)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == written


@pytest.mark.parametrize(
    ("overrides", "roles"),
    [
        ([], {"train": "123", "val": "4", "test": "5"}),
        (["fold=1"], {"train": "234", "val": "5", "test": "1"}),
        (["split=official", "fold=2"], {"train": "1345", "test": "2"}),
        (["split=all"], {"train": "12345"}),
    ],
)
def test_split_writes_the_role_of_every_clip(overrides, roles, config, tmp_path, said, ran):
    ran(split, config(*overrides), tmp_path)
    with (tmp_path / "split.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len({row["filename"] for row in rows}) == 30
    found = {}
    for row in rows:
        found.setdefault(row["role"], set()).add(row["fold"])
    assert {role: "".join(sorted(folds)) for role, folds in found.items()} == roles
    assert "sources in two folds: none" in said.messages


def test_split_names_sources_that_stand_in_two_folds(compose, shared, tmp_path, said, ran):
    root = tmp_path / "esc50"
    shutil.copytree(shared / "esc50_meta", root)
    (root / "audio").mkdir()
    with (root / "meta" / "esc50.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):  # the split looks at names only
            (root / "audio" / row["filename"]).write_bytes(b"x")
    ran(split, compose("data=esc50", f"data.root={root}"), tmp_path)
    assert "sources in two folds: " + ", ".join(LEAKING) in said.messages
    assert "split=holdout fold=5: 1200 train, 400 val, 400 test" in said.messages


def test_precompute_brings_the_store_up_to_date_and_keeps_what_is_true(config, tmp_path, said, ran):
    cfg = config(f"paths.data={tmp_path}")
    ran(precompute, cfg)
    assert "30 clips ready in" in said.messages[-1]
    pngs = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.png")}
    assert len(pngs) == 30
    assert picture(next(iter(pngs))).shape == (32, 26, 3)  # mel bands, frames of half a second at a hop of 160 samples
    ran(precompute, cfg)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.png")} == pngs
    other = config(f"paths.data={tmp_path}", "features.n_mels=16")
    ran(precompute, other)
    assert len(list(tmp_path.rglob("*.png"))) == 60


def test_inspection_leaves_checklist_page_and_tensorboard(config, tmp_path, events, ran):
    table = ran(inspect, config(), tmp_path)
    checklist = json.loads((tmp_path / "checklist.json").read_text(encoding="utf-8"))
    assert checklist["ok"] is True
    assert checklist["sources_in_two_folds"] == {}
    assert {one["name"]: one["clips"] for one in checklist["classes"]} == {"hiss": 10, "hum": 10, "whistle": 10}
    assert shows_something(tmp_path / "data_page.png")
    assert "30 clips in 3 classes" in table
    assert all(name in table for name in ("hiss", "hum", "whistle"))
    tags = events(tmp_path / "tensorboard").tags
    assert tags["images"] and tags["audio"]


@pytest.mark.parametrize("override", ["features=logmel", "model=audionet"])
def test_inspection_draws_spectrograms_whatever_the_features_are(override, compose, sounds, tmp_path, ran):
    cfg = compose("data=folder", f"data.root={sounds}", f"paths.data={tmp_path}", override)
    ran(inspect, cfg, tmp_path)
    assert shows_something(tmp_path / "data_page.png")


def test_inspection_of_broken_files_names_them_all_and_then_fails(config, sounds, tmp_path, ran, capsys):
    root = tmp_path / "sounds"
    shutil.copytree(sounds, root)
    (root / "hum" / "hum1-A.wav").write_bytes((sounds / "hum" / "hum1-A.wav").read_bytes()[:1000])
    (root / "hiss" / "hiss2-A.wav").write_text("<html>404</html>")
    (root / "hiss" / "hiss3-A.wav").write_bytes(b"")
    with pytest.raises(DataError, match="findings make clips unusable, named above"):
        ran(inspect, config(f"data.root={root}"), tmp_path / "run")
    shown = capsys.readouterr().out
    checklist = json.loads((tmp_path / "run" / "checklist.json").read_text(encoding="utf-8"))
    assert checklist["ok"] is False
    assert set(checklist["unreadable"]) == {"hum/hum1-A.wav", "hiss/hiss2-A.wav", "hiss/hiss3-A.wav"}
    assert all(name in shown for name in checklist["unreadable"])


def test_a_table_alone_shows_exactly_the_four_leaking_recordings(compose, shared, tmp_path, ran):
    shown = ran(inspect, compose("data=esc50", f"data.root={shared / 'esc50_meta'}"), tmp_path)
    checklist = json.loads((tmp_path / "checklist.json").read_text(encoding="utf-8"))
    assert checklist["sources_in_two_folds"] == LEAKING
    assert (checklist["num_clips"], checklist["num_with_audio"]) == (2000, 0)
    assert "no audio" in shown


def test_the_range_test_leaves_a_curve_and_a_suggestion(config, tmp_path, said, events):
    cfg = config("augment=mixup", "model.dropout=0.3")
    learning_rate.find_lr(cfg, tmp_path)
    curve = json.loads((tmp_path / "lr_finder.json").read_text(encoding="utf-8"))
    assert len(curve["lrs"]) == len(curve["losses"]) > 10
    assert curve["lrs"] == sorted(curve["lrs"])
    assert curve["suggestion"] in curve["lrs"]
    assert f"suggestion: optimizer.lr={curve['suggestion']:.2g}" in said.messages[-1]
    assert shows_something(tmp_path / "lr_finder.png")
    content = events(tmp_path / "tensorboard")
    assert content.tags["images"] == ["lr/range_test"]
    steps = [step for step, _ in content.scalars["loss/range_test"]]
    assert steps == list(range(len(curve["lrs"])))
    assert [value for _, value in content.scalars["loss/range_test"]] == pytest.approx(curve["losses"])


def test_the_range_test_leaves_the_weights_as_they_were_and_is_repeatable(config, tmp_path, monkeypatch):
    built = []

    def remembered(*arguments, **more):
        task = build_task(*arguments, **more)
        built.append((task, {name: value.clone() for name, value in task.model.state_dict().items()}))
        return task

    monkeypatch.setattr(learning_rate, "build_task", remembered)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        learning_rate.find_lr(config("augment=mixup"), tmp_path / name)
    for task, before in built:
        assert all(torch.equal(value, before[name]) for name, value in task.model.state_dict().items())
    assert (tmp_path / "a" / "lr_finder.json").read_text() == (tmp_path / "b" / "lr_finder.json").read_text()


def test_a_loss_that_never_falls_gives_no_suggestion(config, tmp_path, said, monkeypatch):
    monkeypatch.setattr(learning_rate.F, "cross_entropy", lambda x, target, label_smoothing: 1.0 + 0 * x.sum())
    learning_rate.find_lr(config(), tmp_path)
    assert json.loads((tmp_path / "lr_finder.json").read_text())["suggestion"] is None
    assert "the loss never falls" in said.messages[-1]
    assert (tmp_path / "lr_finder.png").is_file()
