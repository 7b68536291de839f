"""Checkpoints: whole or not there, plain names and plain data, at home wherever their folder goes."""

import json
import pickle
import shutil
from pathlib import Path

import lightning as L
import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn

from esc50.errors import ConfigError, DataError
from esc50.training.checkpoint_files import find_checkpoint, find_last_checkpoint, load_checkpoint
from esc50.training.checkpoints import (
    AtomicCheckpointIO,
    BestAndLast,
    check_same_config,
    checkpoint_callback,
    checkpoint_state,
    copy_checkpoints,
    is_finished,
)

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{message}")
    for message in (
        ".*does not have many workers.*",
        ".*smaller than the logging interval.*",
        ".*litlogger.*",
        ".*`isinstance.treespec, LeafSpec.` is deprecated.*",
        ".*Checkpoint directory .* exists and is not empty.*",
    )
]


class Scripted(L.LightningModule):
    """Validation scores by epoch, as given; training does next to nothing."""

    def __init__(self, scores: list[float]):
        super().__init__()
        self.layer, self.scores = nn.Linear(1, 1), scores

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def validation_step(self, batch, batch_idx):
        score = self.scores[self.current_epoch]
        self.log_dict({"val_accuracy": score, "val_loss": score, "accuracy/val": score})

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

    def on_save_checkpoint(self, checkpoint):
        checkpoint["esc50"] = {"config": {}, "class_names": ["dog"]}


def fit(
    scores: list[float], callback: BestAndLast, *more: L.Callback, resume: Path | None = None, max_epochs: int | None = None
) -> BestAndLast:
    trainer = L.Trainer(
        max_epochs=max_epochs or len(scores),
        accelerator="cpu",
        logger=False,
        callbacks=[callback, *more],
        plugins=[AtomicCheckpointIO()],
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    data = torch.utils.data.DataLoader(torch.ones(2, 1))
    trainer.fit(Scripted(scores), data, data, ckpt_path=resume, weights_only=True)
    return callback


def names(folder: Path) -> set[str]:
    """Everything below the folder of checkpoints."""
    return {path.relative_to(folder / "checkpoints").as_posix() for path in (folder / "checkpoints").rglob("*")}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run folder after three epochs, the second the best."""
    folder = tmp_path_factory.mktemp("a=b") / "run"
    fit([0.5, 0.9, 0.7], checkpoint_callback(folder, monitor="val_accuracy", save_top_k=1))
    return folder


def test_a_checkpoint_that_fails_midway_leaves_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "last.ckpt"
    AtomicCheckpointIO().save_checkpoint({"a": torch.ones(3)}, path)
    old = path.read_bytes()

    def breaks(checkpoint, target):
        Path(target).write_bytes(b"half")
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", breaks)
        with pytest.raises(OSError, match="no space"):
            AtomicCheckpointIO().save_checkpoint({"a": torch.zeros(3)}, path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]
    AtomicCheckpointIO().save_checkpoint({"a": torch.zeros(3)}, path)
    assert torch.equal(torch.load(path, weights_only=True)["a"], torch.zeros(3))


@pytest.mark.parametrize(
    ("monitor", "scores", "best"),
    [("val_accuracy", [0.5, 0.9, 0.7], 1), ("val_loss", [0.5, 0.9, 0.3], 2), ("accuracy/val", [0.5, 0.4, 0.3], 0)],
)
def test_the_best_epoch_and_the_last_are_kept_under_flat_names_without_an_equals_sign(tmp_path, monitor, scores, best):
    callback = fit(scores, checkpoint_callback(tmp_path, monitor=monitor, save_top_k=1))
    assert names(tmp_path) == {f"epoch-{best:03d}.ckpt", "last.ckpt"}
    assert Path(callback.best_model_path).name == f"epoch-{best:03d}.ckpt"
    assert load_checkpoint(callback.best_model_path)["epoch"] == best
    assert load_checkpoint(tmp_path / "checkpoints" / "last.ckpt")["epoch"] == len(scores) - 1


def test_the_best_k_are_kept(tmp_path):
    fit([0.5, 0.9, 0.7, 0.6], checkpoint_callback(tmp_path, monitor="val_accuracy", save_top_k=2))
    assert names(tmp_path) == {"epoch-001.ckpt", "epoch-002.ckpt", "last.ckpt"}


def test_of_equal_epochs_the_first_stays(tmp_path):
    fit([0.5, 0.9, 0.9], checkpoint_callback(tmp_path, monitor="val_accuracy", save_top_k=1))
    assert names(tmp_path) == {"epoch-001.ckpt", "last.ckpt"}


def test_without_a_monitor_only_the_last_epoch_is_kept(tmp_path):
    fit([0.9, 0.5], checkpoint_callback(tmp_path, monitor=None, save_top_k=1))
    assert names(tmp_path) == {"last.ckpt"}
    assert load_checkpoint(tmp_path / "checkpoints" / "last.ckpt")["epoch"] == 1


def test_a_checkpoint_holds_nothing_but_tensors_and_builtin_types(run):
    path = run / "checkpoints" / "last.ckpt"
    assert load_checkpoint(path)["state_dict"].keys() == torch.load(path, weights_only=True)["state_dict"].keys()


class Foreign:
    """What a checkpoint of another program may hold."""


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"<!DOCTYPE html>",
        b"PK\x03\x04" + bytes(50),
        pickle.dumps({"esc50": 1}),
        {"state_dict": {}},
        {"esc50": Foreign()},
        torch.zeros(3),
        ["esc50"],
        "esc50",
    ],
    ids=["missing", "empty", "page", "cut zip", "pickle", "foreign", "own type", "tensor", "list", "text"],
)
@pytest.mark.filterwarnings("ignore:.*legacy")
def test_anything_else_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "x.ckpt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        torch.save(content, path)
    with pytest.raises(DataError) as refusal:
        load_checkpoint(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_checkpoint_cut_short_is_refused(run, tmp_path):
    content = (run / "checkpoints" / "last.ckpt").read_bytes()
    (tmp_path / "cut.ckpt").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="is not a readable checkpoint"):
        load_checkpoint(tmp_path / "cut.ckpt")


def test_the_memory_of_the_best_moves_with_the_folder(run, tmp_path):
    old = shutil.copytree(run, tmp_path / "old")
    moved = old.rename(tmp_path / "new place")
    stored = load_checkpoint(moved / "checkpoints" / "last.ckpt")
    callback = checkpoint_callback(moved, monitor="val_accuracy", save_top_k=1)
    callback.load_state_dict(checkpoint_state(stored))
    assert Path(callback.best_model_path) == moved / "checkpoints" / "epoch-001.ckpt"
    assert callback.best_model_score == pytest.approx(0.9)
    assert Path(callback.kth_best_model_path) == moved / "checkpoints" / "epoch-001.ckpt"
    assert [Path(path).parent for path in callback.best_k_models] == [moved / "checkpoints"]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([0.5, 0.9, 0.7, 0.8], {"epoch-001.ckpt", "last.ckpt"}), ([0.5, 0.9, 0.7, 0.95], {"epoch-003.ckpt", "last.ckpt"})],
)
def test_a_run_that_goes_on_in_another_folder_compares_with_its_best_so_far(run, tmp_path, scores, expected):
    before = names(run)
    copy_checkpoints(run / "checkpoints" / "last.ckpt", tmp_path)
    assert names(tmp_path) == before
    fit(
        scores, checkpoint_callback(tmp_path, monitor="val_accuracy", save_top_k=1), resume=tmp_path / "checkpoints" / "last.ckpt"
    )
    assert names(tmp_path) == expected
    assert names(run) == before  # the run it came from is left alone


def test_checkpoints_are_not_copied_onto_themselves(run):
    before = {path: path.stat().st_mtime_ns for path in (run / "checkpoints").iterdir()}
    copy_checkpoints(run / "checkpoints" / "last.ckpt", run / ".." / run.name)
    assert {path: path.stat().st_mtime_ns for path in (run / "checkpoints").iterdir()} == before


def test_a_run_is_finished_when_all_epochs_are_done_or_it_stopped_early(run, tmp_path):
    stored = load_checkpoint(run / "checkpoints" / "last.ckpt")
    assert is_finished(stored, max_epochs=3)
    assert is_finished(stored, max_epochs=2)
    assert not is_finished(stored, max_epochs=4)
    fit(
        [0.9, 0.5, 0.5, 0.5, 0.5],
        checkpoint_callback(tmp_path, monitor="val_accuracy", save_top_k=1),
        EarlyStopping("val_accuracy", mode="max", patience=2),
    )
    stopped = load_checkpoint(tmp_path / "checkpoints" / "last.ckpt")
    assert stopped["epoch"] == 2
    assert is_finished(stopped, max_epochs=5)


def test_early_stopping_goes_on_counting_after_a_resume(tmp_path):
    """Epochs 1, 2 and 3 bring nothing; a run that was killed in epoch 2 must stop after the same third one."""

    class Kill(L.Callback):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            if trainer.current_epoch == 2:
                raise ZeroDivisionError

    def parts() -> tuple[L.Callback, ...]:
        return (
            checkpoint_callback(tmp_path, monitor="val_accuracy", save_top_k=1),
            EarlyStopping("val_accuracy", mode="max", patience=3),
        )

    with pytest.raises(ZeroDivisionError):
        fit([0.9] + [0.5] * 6, *parts(), Kill())
    last = tmp_path / "checkpoints" / "last.ckpt"
    assert load_checkpoint(last)["epoch"] == 1
    fit([0.9] + [0.5] * 6, *parts(), resume=last)
    assert load_checkpoint(last)["epoch"] == 3


def test_a_file_is_the_checkpoint_itself(run):
    path = run / "checkpoints" / "last.ckpt"
    assert find_checkpoint(path) == find_last_checkpoint(path) == path


def test_of_a_run_folder_the_tested_checkpoint_counts_and_to_go_on_the_last(run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run")
    assert find_checkpoint(folder) == folder / "checkpoints" / "last.ckpt"  # no metrics yet: killed before its test
    (folder / "metrics.json").write_text(json.dumps({"checkpoint": "checkpoints/epoch-001.ckpt"}))
    assert find_checkpoint(str(folder)) == folder / "checkpoints" / "epoch-001.ckpt"
    assert find_last_checkpoint(str(folder)) == folder / "checkpoints" / "last.ckpt"


def test_a_folder_that_only_repeated_a_test_names_the_checkpoint_of_another(run, tmp_path):
    (tmp_path / "metrics.json").write_text(json.dumps({"checkpoint": str(run / "checkpoints" / "last.ckpt")}))
    assert find_checkpoint(tmp_path) == run / "checkpoints" / "last.ckpt"
    (tmp_path / "metrics.json").write_text(json.dumps({"checkpoint": str(tmp_path.parent / "gone.ckpt")}))
    with pytest.raises(DataError, match=r"holds no .*gone\.ckpt"):
        find_checkpoint(tmp_path)


@pytest.mark.parametrize("find", [find_checkpoint, find_last_checkpoint])
def test_where_there_is_none_one_line_says_so(tmp_path, find):
    with pytest.raises(DataError) as refusal:
        find(tmp_path)
    assert str(tmp_path) in str(refusal.value)
    assert "last.ckpt" in str(refusal.value)
    with pytest.raises(DataError, match="nowhere"):
        find(tmp_path / "nowhere")
    (tmp_path / "metrics.json").write_text("{}")
    with pytest.raises(DataError, match="not the folder of a run that finished an epoch"):
        find(tmp_path)


CONFIG = {
    "fold": 5,
    "trainer": {"max_epochs": 10, "precision": "float32"},
    "optimizer": {"lr": 0.1, "betas": [0.9, 0.99]},
    "paths": {"data": "data", "store": "data/store"},
    "watch": {"lr": {"_target_": "x"}},
    "resume": None,
    "data": {"root": "a", "balance": "none"},
}


def test_what_may_change_on_a_resume_is_not_asked_about():
    check_same_config(CONFIG, CONFIG)
    check_same_config(
        {
            **CONFIG,
            "trainer": {"max_epochs": 99, "precision": "float32"},
            "resume": "outputs/x",
            "paths": {"data": "/d"},
            "watch": {},
            "data": {"root": "b", "balance": "none"},
        },
        CONFIG,
    )


def test_every_other_difference_is_listed_with_both_values():
    other = {**CONFIG, "fold": 1, "optimizer": {"lr": 0.1, "betas": [0.9, 0.999], "amsgrad": True}, "trainer": {"max_epochs": 11}}
    with pytest.raises(ConfigError) as refusal:
        check_same_config(other, CONFIG)
    message = str(refusal.value)
    assert "fold=1 (was 5)" in message
    assert "optimizer.betas=[0.9, 0.999] (was [0.9, 0.99])" in message
    assert "optimizer.amsgrad=True (was absent)" in message
    assert "trainer.precision=absent (was float32)" in message
    assert "max_epochs=" not in message
    assert "optimizer.lr" not in message
    assert "\n" not in message


def test_only_whole_names_are_free():
    """`watch` frees watch.lr, not watchful; `trainer.max_epochs` not trainer.max_epochs_more."""
    with pytest.raises(ConfigError, match=r"trainer\.max_epochs_more=2 .*, watchful=1"):
        check_same_config({"watchful": 1, "trainer": {"max_epochs_more": 2}}, {})
