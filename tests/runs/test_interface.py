"""What Python calls gives what the commands give."""

import subprocess
import sys

import numpy as np
import pytest

import esc50
from esc50.errors import ConfigError, DataError
from esc50.results.predictions import read_predictions


@pytest.fixture(scope="module")
def run(tiny, tmp_path_factory):
    return esc50.train([*tiny, "watch=none"], folder=tmp_path_factory.mktemp("interface") / "run")


def test_a_run_has_its_folder_scores_and_predictions(run):
    assert (run.folder / "checkpoints" / "last.ckpt").is_file()
    hits = run.predictions.predicted == run.predictions.targets
    assert run.metrics["test_accuracy"] == hits.mean() and len(hits) == run.metrics["clips"] == 6
    written = read_predictions(run.folder / "predictions.csv")
    np.testing.assert_array_equal(written.probs, run.predictions.probs)
    assert f"test accuracy {hits.mean():.4f} on 6 clips" in repr(run)


def test_predictions_are_a_table(run):
    rows = run.predictions.rows()
    assert len(rows) == 6 and list(rows[0]) == ["filename", "fold", "category", "predicted", "probability"]
    assert all(row["filename"].startswith(row["category"]) for row in rows)
    assert sum(row["predicted"] == row["category"] for row in rows) / 6 == run.metrics["test_accuracy"]
    html = run.predictions._repr_html_()
    assert html.count("<tr>") == 7 and rows[0]["filename"] in html


def test_its_predictor_labels_a_recording_as_the_test_did(run, sounds):
    row = run.predictions.rows()[0]
    found = run.predictor(accelerator="cpu").predict(sounds / row["filename"], num_top=3)
    assert found.label == row["predicted"]


def test_a_run_is_read_back(run, tmp_path):
    again = esc50.read_run(run.folder)
    assert again.metrics == run.metrics and again.predictions.rows() == run.predictions.rows()
    with pytest.raises(DataError, match=r"metrics\.json"):
        esc50.read_run(tmp_path)


def test_a_run_of_everything_has_no_predictions(tiny, tmp_path):
    run = esc50.train([*tiny, "watch=none", "split=all", "trainer.max_epochs=1"], folder=tmp_path / "all")
    assert run.predictions is None and "nothing tested" in repr(run)


def test_the_folder_is_named_by_the_time_where_none_is_given(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = esc50.train([*tiny, "watch=none", "trainer.max_epochs=1"])
    assert run.folder.parent.as_posix() == "outputs/train" and run.folder.is_dir()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["fold=6"], "fold=6: wanted a whole number from 1 to 5"),
        (["fould=3"], "did you mean fold?"),
        (["sweep=folds"], "a sweep trains many runs"),
        (["model=melcn"], "did you mean model=melcnn?"),
    ],
)
def test_what_cannot_be_is_an_exception_with_the_commands_words(overrides, message, tmp_path):
    with pytest.raises(ConfigError) as caught:
        esc50.train(overrides, folder=tmp_path / "run")
    assert message in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_clips_of_a_data_set(sounds, shared):
    clips = esc50.clips("folder", root=sounds)
    assert len(clips) == 30 and {clip.category for clip in clips} == {"hiss", "hum", "whistle"}
    assert len(esc50.clips("esc10", root=shared / "esc10")) == 400


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, esc50; dir(esc50); print(sorted({'torch', 'numpy', 'hydra', 'lightning'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert set(esc50.__all__) <= set(dir(esc50))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = esc50.nothing
