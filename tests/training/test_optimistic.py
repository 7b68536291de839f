"""The optimistic figure is the best epoch on the test fold, and changes nothing."""

import json

import pytest
import torch

from esc50.assembly.retest import restore_task
from esc50.runs import test as testing
from esc50.runs import train as run


@pytest.fixture
def settings(tiny) -> tuple[str, ...]:
    return *tiny, "watch=none", "split=official", "model.dropout=0.3", "trainer.max_epochs=3"


def test_it_is_the_best_epoch_on_the_test_fold_and_training_is_the_same_without(compose, settings, tmp_path, events):
    for name in ("true", "false"):
        run.train(compose(*settings, f"report_optimistic={name}"), tmp_path / name)
    with_it, without = (json.loads((tmp_path / name / "metrics.json").read_text(encoding="utf-8")) for name in ("true", "false"))
    curve = [value for _, value in events(tmp_path / "true" / "tensorboard").scalars["accuracy/test_optimistic"]]
    assert len(curve) == 3
    assert with_it["optimistic_test_accuracy"] == pytest.approx(max(curve))
    assert curve[with_it["optimistic_epoch"] - 1] == max(curve)
    assert curve[-1] == pytest.approx(with_it["test_accuracy"])
    assert "optimistic_test_accuracy" not in without
    assert (tmp_path / "true" / "predictions.csv").read_bytes() == (tmp_path / "false" / "predictions.csv").read_bytes()


def test_a_resumed_run_still_knows_its_best_epoch(compose, settings, tmp_path):
    chosen = (*settings, "report_optimistic=true", "schedule=constant")
    run.train(compose(*chosen), tmp_path / "whole")
    run.train(compose(*chosen, "trainer.max_epochs=2"), tmp_path / "parts")
    run.train(compose(*chosen, f"resume={tmp_path / 'parts'}"), tmp_path / "parts")
    one, other = (json.loads((tmp_path / name / "metrics.json").read_text(encoding="utf-8")) for name in ("whole", "parts"))
    for key in ("optimistic_test_accuracy", "optimistic_epoch"):
        assert one[key] == other[key]


def test_an_evaluation_averages_the_probabilities_of_several_shifts(compose, settings, tmp_path):
    from esc50.assembly.data import build_clips, build_recipe, build_rows
    from esc50.results.predictions import read_predictions
    from esc50.training.checkpoint_files import load_checkpoint

    cfg = compose(*settings)
    run.train(cfg, tmp_path / "run")
    testing.evaluate(tmp_path / "run", tmp_path / "shifted", num_shifts=3)
    found = read_predictions(tmp_path / "shifted" / "predictions.csv")
    clips = build_clips(cfg)
    rows = build_rows(cfg, clips, build_recipe(cfg))
    number = {clip.filename: index for index, clip in enumerate(clips)}
    stored = torch.from_numpy(rows.take([number[name] for name in found.filenames]))
    task = restore_task(load_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt")).eval()
    frames = stored.shape[-1]
    with torch.no_grad():
        probs = sum(task(stored.roll(number * frames // 3, dims=-1))["logits"].softmax(dim=1) for number in range(3)) / 3
    torch.testing.assert_close(torch.from_numpy(found.probs).float(), probs, rtol=1e-4, atol=1e-5)
    assert json.loads((tmp_path / "shifted" / "metrics.json").read_text(encoding="utf-8"))["shifts"] == 3
