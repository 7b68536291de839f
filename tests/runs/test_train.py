"""A whole run: its record is true, going on from where it stopped equals not having stopped, the curves can be read."""

import csv
import json
import logging
import shutil
import signal
from itertools import pairwise
from pathlib import Path

import lightning as L
import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from esc50.assembly.data import build_clips, build_split
from esc50.assembly.retest import restore_task
from esc50.errors import ConfigError, DataError, TrainingError
from esc50.results.predictions import read_predictions, softmax
from esc50.runs import preparation
from esc50.runs import test as testing
from esc50.runs import train as run
from esc50.training.checkpoint_files import load_checkpoint

BATCHES = 3  # of six clips in an epoch's 18
# Everything that has a state or draws: masks, mixup, dropout, a frozen first epoch, one-cycle, clipping.
RICH = (
    "augment=strong",
    "augment.spectrogram.frequency_mask.max_width=4",
    "augment.spectrogram.time_mask.max_width=4",
    "trainer.freeze_epochs=1",
    "trainer.max_epochs=4",
    "schedule=onecycle",
    "model.dropout=0.3",
    "trainer.gradient_clip=1",
    "data.balance=oversample",
)
WATCHED = ("watch=full", *RICH)
OF_THE_MACHINE = ("memory/", "time/")  # tags whose values are not those of a run but of where and when it ran
TIMES = ("seconds", "train_seconds")


class StoppedError(Exception):
    """Stands for whatever ends a run from outside."""


class StopAt(L.Callback):
    """Ends the training when epoch `epoch`, counted from 0, has gone on for one batch."""

    def __init__(self, epoch: int, error: BaseException):
        self.epoch, self.error = epoch, error

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        if trainer.current_epoch == self.epoch:
            raise self.error


def metrics_of(folder: Path) -> dict:
    return json.loads((folder / "metrics.json").read_text(encoding="utf-8"))


def last_of(folder: Path) -> dict:
    return load_checkpoint(folder / "checkpoints" / "last.ckpt")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Sums come out the same only with as many threads."""
    before = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")  # which a run respects
        torch.set_num_threads(1)
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def config(compose, tiny):
    """A run of a second; nothing is watched unless the overrides say so."""

    def composed(*overrides: str):
        watched = any(override.startswith("watch=") for override in overrides)
        return compose(*tiny, *(() if watched else ("watch=none",)), *overrides)

    return composed


@pytest.fixture(scope="module")
def straight(config, tmp_path_factory) -> Path:
    """Four epochs without a stop."""
    folder = tmp_path_factory.mktemp("straight")
    run.train(config(*WATCHED), folder)
    return folder


@pytest.fixture(scope="module")
def stopped(config, tmp_path_factory) -> Path:
    """The same run, ended from outside within its third epoch."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        build = run.build_watch
        patch.setattr(run, "build_watch", lambda cfg: [*build(cfg), StopAt(2, StoppedError())])
        with pytest.raises(StoppedError):
            run.train(config(*WATCHED), folder)
    assert not (folder / "metrics.json").exists()
    return folder


@pytest.fixture(params=["same folder", "other folder"])
def resumed(request, stopped, config, tmp_path) -> Path:
    """The stopped run, gone on with."""
    source, folder = tmp_path / "stopped", tmp_path / "other"
    shutil.copytree(stopped, source)
    if request.param == "same folder":
        folder = source
    else:
        folder.mkdir()
    run.train(config(*WATCHED, f"resume={source}"), folder)
    return folder


# ---------------------------------------------------------------------- the record


def test_scores_are_those_of_the_predictions_file(straight):
    metrics, predictions = metrics_of(straight), read_predictions(straight / "predictions.csv")
    assert metrics["clips"] == len(predictions.filenames) == 6
    assert metrics["test_accuracy"] == (predictions.predicted == predictions.targets).mean()
    of_truth = predictions.probs[np.arange(6), predictions.targets]
    assert metrics["test_loss"] == pytest.approx(-np.log(of_truth).mean(), rel=1e-12)
    assert metrics["test_top5"] == 1.0  # there are three classes


def test_the_tested_checkpoint_is_the_best_on_validation_with_the_score_it_was_chosen_for(straight, events):
    metrics = metrics_of(straight)
    accuracies = [value for _, value in events(straight / "tensorboard").scalars["accuracy/val"]]
    assert max(accuracies) > min(accuracies), "the epochs should differ, else this shows nothing"
    best = accuracies.index(max(accuracies))
    assert metrics["checkpoint"] == f"checkpoints/epoch-{best:03d}.ckpt"
    assert metrics["epoch"] == best + 1
    assert metrics["val_accuracy"] == pytest.approx(max(accuracies), abs=1e-7)  # events hold float32
    remembered = [state["best_model_score"] for state in last_of(straight)["callbacks"].values() if "best_model_score" in state]
    assert [float(score) for score in remembered] == pytest.approx([metrics["val_accuracy"]])


def test_training_returns_the_validation_accuracy_and_none_where_there_is_no_validation(config, tmp_path):
    value = run.train(config("trainer.max_epochs=1"), tmp_path / "holdout")
    assert isinstance(value, float)
    assert value == metrics_of(tmp_path / "holdout")["val_accuracy"]
    assert run.train(config("trainer.max_epochs=1", "split=official"), tmp_path / "official") is None


def test_the_official_split_tests_the_last_epoch_and_selects_nothing(config, tmp_path):
    run.train(config("split=official", "trainer.max_epochs=3"), tmp_path)
    metrics = metrics_of(tmp_path)
    assert (metrics["checkpoint"], metrics["epoch"], metrics["train_clips"]) == ("checkpoints/last.ckpt", 3, 24)
    assert [metrics[f"val_{name}"] for name in ("accuracy", "loss", "top5", "macro_f1")] == [None] * 4
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["last.ckpt"]
    weights = last_of(tmp_path)["state_dict"]
    predictions = read_predictions(tmp_path / "predictions.csv")
    assert np.array_equal(predictions.probs, by_hand(config("split=official"), weights, last_of(tmp_path)))


def by_hand(cfg, weights: dict, stored: dict) -> np.ndarray:
    """Probabilities of the test clips from the weights, without Trainer, in float32."""
    task = restore_task(stored).eval()
    task.load_state_dict(weights)
    recipe = task.front_end.recipe
    clips = build_split(cfg, build_clips(cfg)).test
    batch = torch.from_numpy(np.stack([recipe.compute(clip.path) for clip in clips]))
    with torch.no_grad():
        return softmax(task(batch)["logits"].numpy())


def test_everything_is_trained_on_and_nothing_is_tested_where_all_is_asked_for(config, tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        assert run.train(config("split=all", "trainer.max_epochs=1"), tmp_path) is None
    metrics = metrics_of(tmp_path)
    assert (metrics["train_clips"], metrics["val_clips"], metrics["clips"]) == (30, 0, 0)
    assert metrics["test_accuracy"] is None and metrics["val_accuracy"] is None
    assert not (tmp_path / "predictions.csv").exists()
    assert "trained on all 30 clips, nothing tested" in caplog.messages[-1]


def test_scores_are_taken_in_float32_when_training_is_in_bfloat16(config, tmp_path):
    run.train(config("trainer.precision=bfloat16", "split=official"), tmp_path)
    stored = last_of(tmp_path)
    assert OmegaConf.load(tmp_path / "config.yaml").trainer.precision == stored["esc50"]["config"]["trainer"]["precision"]
    assert stored["esc50"]["config"]["trainer"]["precision"] == "bfloat16"
    predictions = read_predictions(tmp_path / "predictions.csv")
    assert np.array_equal(predictions.probs, by_hand(config("split=official"), stored["state_dict"], stored))


def test_the_resolved_precision_is_stored_and_a_resume_keeps_it(config, tmp_path, monkeypatch):
    monkeypatch.setattr(preparation, "resolve_precision", lambda requested, **_: ("bfloat16", "a test says so"))
    run.train(config("trainer.max_epochs=1"), tmp_path)
    monkeypatch.setattr(preparation, "resolve_precision", lambda requested, **_: pytest.fail("asked again"))
    run.train(config("trainer.max_epochs=2", f"resume={tmp_path}"), tmp_path)
    assert last_of(tmp_path)["esc50"]["config"]["trainer"]["precision"] == "bfloat16"
    assert OmegaConf.load(tmp_path / "config.yaml").trainer.precision == "bfloat16"


def test_one_seed_gives_one_result_and_another_another(config, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run.train(config(*RICH, f"seed={seed}", "trainer.max_epochs=2"), tmp_path / name)
    a, b, c = ((tmp_path / name / "predictions.csv").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_clips_computed_anew_by_two_workers_train_the_same_model_as_the_store(config, tmp_path):
    run.train(config(*RICH, "trainer.max_epochs=2"), tmp_path / "store")
    run.train(config(*RICH, "trainer.max_epochs=2", "features.read=compute", "loader.num_workers=2"), tmp_path / "workers")
    assert (tmp_path / "store" / "predictions.csv").read_bytes() == (tmp_path / "workers" / "predictions.csv").read_bytes()


def test_names_of_checkpoints_are_flat_and_need_no_quoting(straight):
    names = sorted(path.name for path in (straight / "checkpoints").rglob("*"))
    assert "last.ckpt" in names
    assert not any("=" in name or "/" in name for name in names)
    assert all(path.is_file() for path in (straight / "checkpoints").rglob("*"))


def test_a_run_folder_reached_through_a_link_is_as_good_as_any(config, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    for protocol in ("official", "holdout"):
        run.train(config(f"split={protocol}", "trainer.max_epochs=1"), tmp_path / "link" / protocol)
        assert (tmp_path / "disk" / protocol / metrics_of(tmp_path / "disk" / protocol)["checkpoint"]).is_file()


def test_a_loss_that_is_not_finite_ends_the_run_with_advice(config, tmp_path):
    with pytest.raises(TrainingError, match=r"epoch \d+: the loss is nan at step \d+: .*lower optimizer.lr"):
        run.train(config("optimizer.lr=1e30", "schedule=constant", "trainer.precision=float32"), tmp_path)


def test_clips_and_images_smaller_than_the_poolings_are_trained_on(config, tmp_path):
    run.train(config("features.n_mels=4", "features.seconds=0.05", "model.channels=[4,8,8,8]", "trainer.max_epochs=1"), tmp_path)
    assert metrics_of(tmp_path)["clips"] == 6


def test_a_device_that_is_not_there_is_a_problem_of_the_configuration(config, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=r"trainer\.accelerator=gpu"):
        run.train(config("trainer.accelerator=gpu"), tmp_path)
    with pytest.raises(ConfigError, match=r"trainer\.strategy=no_such"):
        run.train(config("trainer.strategy=no_such"), tmp_path)


# ---------------------------------------------------------------------- going on


def test_a_resumed_run_equals_an_uninterrupted_one(straight, stopped, resumed):
    assert last_of(stopped)["epoch"] == 1  # two epochs whole, the third is lost
    now, then = last_of(resumed), last_of(straight)
    assert now["epoch"] == then["epoch"] == 3
    assert now["global_step"] == then["global_step"] == 4 * BATCHES
    for name, weight in then["state_dict"].items():
        assert torch.equal(now["state_dict"][name], weight), name
    moments = [[state for _, state in sorted(one["optimizer_states"][0]["state"].items())] for one in (now, then)]
    assert all(torch.equal(mine[key], its[key]) for mine, its in zip(*moments, strict=True) for key in its)
    differing = {key for key, value in metrics_of(straight).items() if metrics_of(resumed)[key] != value}
    assert differing <= {*TIMES, "git_commit"}
    for name in ("predictions.csv", "split.csv"):
        assert (resumed / name).read_bytes() == (straight / name).read_bytes()
    assert (resumed / metrics_of(resumed)["checkpoint"]).is_file()


def test_curves_of_a_resumed_run_do_not_run_back(straight, resumed, events):
    whole, mine = events(straight / "tensorboard"), events(resumed / "tensorboard")
    assert mine.scalars.keys() == whole.scalars.keys()
    for tag, points in mine.scalars.items():
        steps = [step for step, _ in points]
        assert all(before < after for before, after in pairwise(steps)), tag
        then = whole.scalars[tag]
        if tag.startswith(OF_THE_MACHINE):
            points, then = steps, [step for step, _ in then]
        assert points == then[-len(points) :], tag
        if resumed.name == "stopped":  # the same folder: nothing is missing either
            assert len(points) == len(then), tag


def test_a_finished_run_is_only_tested_again(straight, config, tmp_path, monkeypatch, caplog, events):
    folder = tmp_path / "again"
    shutil.copytree(straight, folder)
    before = {path.name: path.read_bytes() for path in (folder / "checkpoints").iterdir()}
    monkeypatch.setattr(L.Trainer, "fit", lambda *_, **__: pytest.fail("trained again"))
    with caplog.at_level(logging.INFO):
        run.train(config(*WATCHED, f"resume={folder}"), folder)
    assert "the run is finished after 4 epochs and only tested again" in caplog.messages
    assert {path.name: path.read_bytes() for path in (folder / "checkpoints").iterdir()} == before
    assert (folder / "predictions.csv").read_bytes() == (straight / "predictions.csv").read_bytes()
    assert events(folder / "tensorboard").scalars == events(straight / "tensorboard").scalars


def test_a_finished_run_can_be_given_more_epochs(straight, config, tmp_path, events):
    folder = tmp_path / "more"
    cfg = config("watch=default", *RICH, f"resume={straight}", "trainer.max_epochs=6")
    run.train(cfg, folder)
    assert last_of(folder)["epoch"] == 5
    assert last_of(folder)["global_step"] == 6 * BATCHES
    from esc50.assembly.data import component

    schedule, total = component(cfg, "schedule", _partial_=True), 6 * BATCHES
    rates = events(folder / "tensorboard").scalars["lr/head"]
    assert rates == [(step, pytest.approx(cfg.optimizer.lr * schedule(step / total))) for step in range(4 * BATCHES, total)]


def test_a_run_that_stopped_early_is_finished(config, tmp_path, monkeypatch):
    overrides = ("early_stopping.patience=1", "trainer.max_epochs=50", "optimizer.lr=1e-9")
    run.train(config(*overrides), tmp_path)
    assert metrics_of(tmp_path)["epoch"] == 1
    assert last_of(tmp_path)["epoch"] == 1  # the second epoch was no better
    monkeypatch.setattr(L.Trainer, "fit", lambda *_, **__: pytest.fail("trained again"))
    run.train(config(*overrides, f"resume={tmp_path}"), tmp_path)


def test_a_resume_with_another_configuration_is_refused_and_names_the_keys(straight, config, tmp_path):
    with pytest.raises(ConfigError) as caught:
        run.train(
            config(*RICH, f"resume={straight}", "seed=3", "optimizer.weight_decay=0.5", "trainer.freeze_epochs=2"), tmp_path
        )
    for part in ("optimizer.weight_decay=0.5 (was 0.01)", "seed=3 (was 0)", "trainer.freeze_epochs=2 (was 1)"):
        assert part in str(caught.value)
    assert "model" not in str(caught.value)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match=r"augment\.mix\.mixup\.alpha=absent \(was 0\.2\)"):
        run.train(config(*RICH, f"resume={straight}", "augment.mix=null"), tmp_path)


def test_where_things_lie_and_what_is_watched_may_change_in_a_resume(stopped, config, sounds, tmp_path):
    shutil.copytree(sounds, tmp_path / "moved")
    run.train(
        config(*RICH, f"resume={stopped}", f"data.root={tmp_path / 'moved'}", f"paths.data={tmp_path / 'derived'}", "watch=none"),
        tmp_path / "run",
    )
    assert last_of(tmp_path / "run")["epoch"] == 3


def test_a_checkpoint_alone_can_be_gone_on_from(stopped, straight, config, tmp_path, caplog):
    """Without the best epoch beside it the last weights are the same, and the loss of the best is said."""
    shutil.copy(stopped / "checkpoints" / "last.ckpt", tmp_path / "last.ckpt")
    run.train(config(*RICH, f"resume={tmp_path / 'last.ckpt'}"), tmp_path / "run")
    now, then = last_of(tmp_path / "run")["state_dict"], last_of(straight)["state_dict"]
    assert all(torch.equal(now[name], weight) for name, weight in then.items())
    assert (tmp_path / "run" / metrics_of(tmp_path / "run")["checkpoint"]).is_file()
    assert any("does not lie beside the checkpoint" in message for message in caplog.messages)


@pytest.mark.parametrize("content", [b"", b"junk", None], ids=["empty", "junk", "of another program"])
def test_a_file_that_is_no_checkpoint_of_ours_is_refused(content, config, tmp_path):
    path = tmp_path / "x.ckpt"
    if content is None:
        torch.save({"state_dict": {}}, path)
    else:
        path.write_bytes(content)
    for attempt in (
        lambda: run.train(config(f"resume={path}"), tmp_path / "run"),
        lambda: testing.evaluate(path, tmp_path / "run"),
    ):
        with pytest.raises(DataError, match=r"x\.ckpt is not a"):
            attempt()


def test_a_folder_without_checkpoints_is_no_run(config, tmp_path):
    with pytest.raises(DataError, match=r"holds no checkpoints/last\.ckpt"):
        run.train(config(f"resume={tmp_path}"), tmp_path / "run")
    with pytest.raises(DataError, match=r"holds no checkpoints/last\.ckpt"):
        testing.evaluate(tmp_path, tmp_path / "run")


def test_clips_that_came_since_are_no_part_of_a_test_or_a_resume(config, sounds, tmp_path):
    """Folds are made from the listing: a new file would move clips that were learnt into the test."""
    root = tmp_path / "sounds"
    shutil.copytree(sounds, root)
    run.train(config(f"data.root={root}", "trainer.max_epochs=1"), tmp_path / "run")
    shutil.copy(root / "hum" / "hum0-A.wav", root / "hum" / "new.wav")
    with pytest.raises(DataError, match="not those that the checkpoint was trained with"):
        testing.evaluate(tmp_path / "run", tmp_path / "evaluated")
    with pytest.raises(DataError, match="not those that the checkpoint was trained with"):
        run.train(config(f"data.root={root}", "trainer.max_epochs=2", f"resume={tmp_path / 'run'}"), tmp_path / "run")
    shutil.rmtree(root / "hum")
    with pytest.raises(DataError, match="has the classes hiss, whistle, the checkpoint knows hiss, hum, whistle"):
        testing.evaluate(tmp_path / "run", tmp_path / "evaluated")


def test_ctrl_c_keeps_the_whole_epochs_and_says_how_to_go_on(config, tmp_path, monkeypatch):
    build, handler = run.build_watch, signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(run, "build_watch", lambda cfg: [*build(cfg), StopAt(1, KeyboardInterrupt())])
    try:
        with pytest.raises(KeyboardInterrupt, match=f"resume={tmp_path} goes on"):
            run.train(config(), tmp_path)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert last_of(tmp_path)["epoch"] == 0


def test_what_a_killed_run_left_half_written_is_not_taken_along(stopped, config, tmp_path):
    source = tmp_path / "killed"
    shutil.copytree(stopped, source)
    (source / "checkpoints" / ".77-abcd.part.ckpt").write_bytes(b"half")
    run.train(config(*RICH, f"resume={source}"), tmp_path / "run")
    assert not list((tmp_path / "run" / "checkpoints").glob(".*"))


# ---------------------------------------------------------------------- the test again


def test_an_evaluation_repeats_the_test_to_the_last_digit(straight, tmp_path, monkeypatch, sounds):
    """From the run folder, and from the file alone, moved, from another working directory, with the data elsewhere."""
    moved, elsewhere = tmp_path / "epoch=3.ckpt", tmp_path / "elsewhere"
    shutil.copy(straight / metrics_of(straight)["checkpoint"], moved)
    shutil.copytree(sounds, elsewhere)
    value = testing.evaluate(straight, tmp_path / "from_folder")
    monkeypatch.chdir(tmp_path)
    testing.evaluate(Path("epoch=3.ckpt"), tmp_path / "from_file", root="elsewhere")
    assert value == metrics_of(straight)["val_accuracy"]
    for name in ("from_folder", "from_file"):
        assert (tmp_path / name / "predictions.csv").read_bytes() == (straight / "predictions.csv").read_bytes()
        again, first = metrics_of(tmp_path / name), metrics_of(straight)
        same = set(first) - {*TIMES, "checkpoint", "git_commit"}
        assert {key: again[key] for key in same} == {key: first[key] for key in same}
        assert (tmp_path / name / again["checkpoint"]).is_file()
    assert (tmp_path / "from_file" / metrics_of(tmp_path / "from_file")["checkpoint"]).resolve() == moved


def test_an_evaluation_needs_no_device_that_only_the_training_had(straight, tmp_path, monkeypatch):
    stored = last_of(straight)
    stored["esc50"]["config"]["trainer"]["accelerator"] = "gpu"
    torch.save(stored, tmp_path / "gpu.ckpt")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    testing.evaluate(tmp_path / "gpu.ckpt", tmp_path / "run")
    assert metrics_of(tmp_path / "run")["clips"] == 6


def test_an_evaluation_writes_nothing_into_the_data(straight, tmp_path, monkeypatch, sounds):
    root = tmp_path / "sounds"
    shutil.copytree(sounds, root)
    stored = last_of(straight)
    stored["esc50"]["config"]["paths"] |= {"data": "data", "store": "data/store"}
    torch.save(stored, tmp_path / "relative.ckpt")
    monkeypatch.chdir(root)
    with pytest.raises(ConfigError, match=r"paths\.store=data/store: lies inside data\.root"):
        testing.evaluate(tmp_path / "relative.ckpt", tmp_path / "run", root=".")
    assert not (root / "data").exists()


# ---------------------------------------------------------------------- TensorBoard


def test_every_step_and_every_epoch_has_its_value(straight, events):
    scalars = events(straight / "tensorboard").scalars
    every_step, every_epoch = list(range(4 * BATCHES)), [BATCHES * epoch - 1 for epoch in range(1, 5)]
    for tag in ("loss/train_step", "lr/head", "lr/late", "lr/early"):
        assert [step for step, _ in scalars[tag]] == every_step, tag
    for tag in ("loss/train", "accuracy/train", "loss/val", "accuracy/val", "top5/val", "macro_f1/val"):
        assert [step for step, _ in scalars[tag]] == every_epoch, tag  # a validation before training would be one more
    steps = np.array([value for _, value in scalars["loss/train_step"]]).reshape(4, BATCHES)
    assert np.allclose(steps.mean(axis=1), [value for _, value in scalars["loss/train"]])


def test_a_frozen_body_has_rate_0_and_then_the_heads(straight, events):
    scalars = events(straight / "tensorboard").scalars
    body, head = ([value for _, value in scalars[tag]] for tag in ("lr/early", "lr/head"))
    assert body[:BATCHES] == [0.0] * BATCHES
    assert body[BATCHES:] == head[BATCHES:]
    assert min(head) > 0


def test_settings_and_final_scores_stand_in_the_run_itself(straight, events):
    from tensorboard.plugins.hparams import metadata, plugin_data_pb2

    assert {path.parent for path in straight.rglob("events.out.*")} == {straight / "tensorboard"}
    content = events(straight / "tensorboard")
    found = {}
    for tag in (metadata.EXPERIMENT_TAG, metadata.SESSION_START_INFO_TAG, metadata.SESSION_END_INFO_TAG):
        summary = content.content.SummaryMetadata(tag)
        found[tag] = plugin_data_pb2.HParamsPluginData.FromString(summary.plugin_data.content)
    start = found[metadata.SESSION_START_INFO_TAG].session_start_info.hparams
    assert start["optimizer.lr"].number_value == 0.02
    assert start["augment.mix.mixup.alpha"].number_value == 0.2
    named = {info.name.tag for info in found[metadata.EXPERIMENT_TAG].experiment.metric_infos}
    assert {"final/test_accuracy", "final/val_accuracy"} <= named
    metrics = metrics_of(straight)
    for tag in named:
        ((_, value),) = content.scalars[tag]
        assert value == pytest.approx(metrics[tag.removeprefix("final/")], rel=1e-6)


def test_the_graph_of_the_model_is_there(straight, events):
    content = events(straight / "tensorboard")
    assert content.tags["graph"]
    assert "head" in str(content.content.Graph())


def test_a_model_that_cannot_be_traced_costs_a_warning_and_not_the_run(config, tmp_path, monkeypatch, caplog, events):
    (tmp_path / "untraceable.py").write_text(
        "import torch\nfrom esc50.models.melcnn import MelCNN\n\n"
        "class Net(MelCNN):\n"
        "    def forward(self, x):\n"
        "        if torch.jit.is_tracing():\n            raise RuntimeError('not to be traced')\n"
        "        return super().forward(x)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    run.train(config("watch=default", "model._target_=untraceable.Net", "trainer.max_epochs=1"), tmp_path / "run")
    assert "no graph of the network in TensorBoard: not to be traced" in caplog.messages
    assert not events(tmp_path / "run" / "tensorboard").tags["graph"]
    assert metrics_of(tmp_path / "run")["clips"] == 6


def test_a_folder_used_again_shows_the_new_run_only(config, tmp_path, events):
    for epochs in (3, 1):
        run.train(config(f"trainer.max_epochs={epochs}"), tmp_path)
    scalars = events(tmp_path / "tensorboard").scalars
    assert [step for step, _ in scalars["loss/train_step"]] == list(range(BATCHES))
    assert len(scalars["final/test_accuracy"]) == 1


def test_the_split_file_names_every_clip_once_with_its_role(straight):
    with (straight / "split.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["filename", "fold", "role"]
    assert len({row["filename"] for row in rows}) == len(rows) == 30
    assert {(row["fold"], row["role"]) for row in rows} == {
        ("1", "train"),
        ("2", "train"),
        ("3", "train"),
        ("4", "val"),
        ("5", "test"),
    }


@pytest.mark.slow
def test_a_compiled_model_is_tested_as_evaluate_tests_it(shell, tiny, tmp_path):
    run = tmp_path / "run"
    trained = shell("train.py", *tiny, "trainer.compile=true", f"hydra.run.dir={run}", cwd=tmp_path)
    assert trained.status == 0, trained.err
    again = shell("scripts/evaluate.py", f"checkpoint={run}", f"hydra.run.dir={tmp_path / 'again'}", cwd=tmp_path)
    assert again.status == 0, again.err
    assert (run / "predictions.csv").read_bytes() == (tmp_path / "again" / "predictions.csv").read_bytes()
