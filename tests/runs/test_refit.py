"""A model trained on all clips quotes the score of its recipe, and no other."""

import json

import pytest
import torch

SWEEP, REFIT = "hydra.sweep.dir=folds", "hydra.run.dir=all"


@pytest.fixture(scope="module")
def place(command, tiny, tmp_path_factory):
    """A cross-validation on two folds, and the model that was trained on all clips by the same recipe."""
    place = tmp_path_factory.mktemp("refit")
    for settings in (("sweep=folds", "fold=1,2", SWEEP), ("split=all", "scored_by=folds", REFIT)):
        ended = command("train.py", *settings, *tiny, "watch=none", cwd=place)
        assert ended.status == 0, ended.err
    return place


def test_checkpoint_record_and_predict_quote_the_cross_validated_score(place, command, sounds):
    accuracies = [json.loads(path.read_text(encoding="utf-8"))["test_accuracy"] for path in place.glob("folds/*/metrics.json")]
    mean = sum(accuracies) / 2
    known = torch.load(place / "all" / "checkpoints" / "last.ckpt", weights_only=True)["esc50"]
    assert known["score"] is None and known["temperature"] is None
    assert known["scored_by"]["accuracy_mean"] == pytest.approx(mean)
    assert (known["scored_by"]["folds"], known["scored_by"]["seeds"], known["scored_by"]["selection"]) == (2, 1, "last epoch")
    record = json.loads((place / "all" / "metrics.json").read_text(encoding="utf-8"))
    assert record["scored_by"] == known["scored_by"] and record["test_accuracy"] is None
    ended = command("scripts/predict.py", "checkpoint=all", f"input={sounds / 'hum' / 'hum0-A.wav'}", cwd=place)
    assert ended.out.splitlines()[-1].startswith(
        f"The model was trained on all clips and has no test score of its own; its recipe was cross-validated at {mean:.1%}"
    )
    assert "uncalibrated" in ended.out


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            ("split=all", "scored_by=folds", "model.dropout=0.5"),
            "scored_by=folds: its runs were trained with another model.dropout;",
        ),
        (("split=official", "scored_by=folds"), "scored_by=folds: split=official has a score of its own; it is for split=all"),
        (("split=all", "scored_by=nowhere"), "scored_by=nowhere: no such folder"),
        (("split=all", "scored_by=all"), "scored_by=all: its runs tested nothing"),
    ],
)
def test_no_other_score_is_quoted(settings, message, place, command, tiny):
    ended = command("train.py", *settings, *tiny, "watch=none", "hydra.run.dir=refused", cwd=place)
    assert ended.status == 2 and ended.err.startswith(f"error: {message}") and len(ended.err.splitlines()) == 1


def test_the_score_of_other_classes_is_refused(place, command, tiny, sounds, tmp_path):
    import shutil

    shutil.copytree(sounds, tmp_path / "two")
    shutil.rmtree(tmp_path / "two" / "hiss")
    shutil.copytree(place / "folds", tmp_path / "folds")
    settings = [one for one in tiny if not one.startswith("data.root")]
    ended = command("train.py", "split=all", "scored_by=folds", *settings, "data.root=two", "watch=none", cwd=tmp_path)
    assert ended.status == 2
    assert ended.err == (
        "error: scored_by=folds: its runs have the classes hiss, hum, whistle, the data at two has hum,"
        " whistle; give the sweep on the same data\n"
    )
