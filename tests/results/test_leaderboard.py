"""Every number of the leaderboard, recomputed from small predictions files written by hand."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image
from scipy.stats import binom

from esc50.errors import DataError
from esc50.results import compare, ensemble
from esc50.results.leaderboard import ESC10, bootstrap, dataset_of, leaderboard, published, systems
from esc50.results.leaderboard_page import COLUMNS, write_page
from esc50.results.predictions import Predictions, write_predictions
from esc50.results.runs import find_runs, read_run, unfinished_runs

NAMES = ("cat", "dog")


def write_run(
    folder: Path,
    *,
    fold: int,
    seed: int = 0,
    right: str,
    model: str = "Net",
    protocol: str = "official",
    names: tuple[str, ...] = NAMES,
    targets=None,
    **more,
) -> Path:
    """A run folder whose clips are right or wrong as the word `right` says: `10` is one right, one wrong clip."""
    targets = np.array([i % len(names) for i in range(len(right))] if targets is None else targets)
    probs = np.full((len(right), len(names)), 0.3 / (len(names) - 1))
    for row, (target, hit) in enumerate(zip(targets, right, strict=True)):
        probs[row, target if hit == "1" else (target + 1) % len(names)] = 0.7
    write_predictions(
        Predictions(
            filenames=tuple(f"{fold}-{i}.wav" for i in range(len(right))),
            folds=(fold,) * len(right),
            targets=targets,
            probs=probs,
            class_names=names,
        ),
        folder / "predictions.csv",
    )
    config = {
        "fold": fold,
        "seed": seed,
        "model": {"_target_": f"models.{model}"},
        "augment": {},
        "trainer": {"max_epochs": 3},
        "features": {"kind": "mel_png"},
        "paths": {"data": str(folder)},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    metrics = {"protocol": protocol, "fold": fold, "seed": seed, "train_seconds": 60.0, "parameters": 1234567} | more
    (folder / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
    return folder


@pytest.fixture
def five_folds(tmp_path) -> Path:
    """Two seeds on five folds of four clips: 3, 2, 4, 2 and 1 right with seed 1; one more in fold 5 with seed 2."""
    for fold, right in enumerate(("1110", "1100", "1111", "1010", "1000"), start=1):
        write_run(tmp_path / f"{fold}-1", fold=fold, seed=1, right=right)
        write_run(tmp_path / f"{fold}-2", fold=fold, seed=2, right="1001" if fold == 5 else right)
    return tmp_path


def runs_below(place: Path) -> list:
    return [read_run(folder) for folder in find_runs(place)]


def test_seeds_are_averaged_before_folds_and_the_deviation_is_of_the_folds(five_folds):
    (entry,) = leaderboard(runs_below(five_folds))
    folds = [0.75, 0.5, 1.0, 0.5, (0.25 + 0.5) / 2]
    assert (entry.system, entry.folds, entry.seeds, entry.selection) == ("Net", 5, 2, "last epoch")
    assert list(entry.fold_accuracies.values()) == folds
    assert entry.accuracy_mean == pytest.approx(sum(folds) / 5)
    assert entry.accuracy_std == pytest.approx(np.std(folds, ddof=1))
    assert entry.train_seconds == 600
    assert not entry.is_partial


def test_the_interval_is_that_of_resampled_clips():
    """For right and wrong clips of equal weight it is a binomial's."""
    values = np.array([1.0] * 70 + [0.0] * 30)
    low, high = bootstrap(values, np.ones(100))
    assert (low, high) == pytest.approx(tuple(binom.ppf((0.025, 0.975), 100, 0.7) / 100), abs=0.011)
    assert bootstrap(values, np.ones(100)) == (low, high)
    assert bootstrap(np.ones(10), np.ones(10)) == (1.0, 1.0)


def test_folds_of_different_size_count_the_same(tmp_path):
    write_run(tmp_path / "a", fold=1, right="1111111111")
    write_run(tmp_path / "b", fold=2, right="00")
    (entry,) = leaderboard(runs_below(tmp_path))
    assert entry.accuracy_mean == 0.5
    assert entry.ci_low < 0.5 < entry.ci_high
    assert entry.is_partial and entry.folds == 2


def test_a_single_fold_has_no_deviation(tmp_path):
    write_run(tmp_path / "a", fold=3, right="1100")
    (entry,) = leaderboard(runs_below(tmp_path))
    assert entry.accuracy_std is None and entry.folds == 1


def test_systems_are_told_apart_by_what_differs_beyond_fold_and_seed(tmp_path):
    write_run(tmp_path / "a", fold=1, right="11", model="A")
    write_run(tmp_path / "b", fold=1, right="10", model="B")
    longer = write_run(tmp_path / "c", fold=1, right="00", model="B")
    config = yaml.safe_load((longer / "config.yaml").read_text())
    config["trainer"]["max_epochs"] = 9
    (longer / "config.yaml").write_text(yaml.safe_dump(config))
    entries = leaderboard(runs_below(tmp_path))
    assert [(entry.system, entry.accuracy_mean) for entry in entries] == [
        ("A", 1.0),
        ("B, trainer.max_epochs=3", 0.5),
        ("B, trainer.max_epochs=9", 0.0),
    ]


def test_published_results_stand_beside_runs_on_the_same_data_only(tmp_path):
    assert dataset_of(NAMES) is None and published(NAMES) == []
    names = tuple(sorted(ESC10))
    write_run(tmp_path / "a", fold=1, right="1111111110", names=names)
    entries = leaderboard(runs_below(tmp_path))
    assert [entry.accuracy_mean for entry in entries] == sorted((entry.accuracy_mean for entry in entries), reverse=True)
    ours = [entry for entry in entries if entry.is_ours]
    assert len(ours) == 1 and entries.index(ours[0]) == 5  # below 0.97, 0.9665, 0.957, 0.9375, 0.914
    assert {entry.selection for entry in entries if "ACDNet" in entry.system} == {"best epoch on the test fold"}
    esc50 = (*names, *(f"class_{i}" for i in range(40)))
    accuracies = {entry.system: entry.accuracy_mean for entry in published(esc50)}
    assert accuracies["human listeners"] == 0.813 and accuracies["BEATs iter3+"] == 0.981


def test_the_page_says_what_the_entries_say(five_folds, tmp_path):
    for folder in find_runs(five_folds):
        path = folder / "metrics.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"optimistic_test_accuracy": 0.875}))
    entries = leaderboard(runs_below(five_folds))
    text = write_page(entries, tmp_path / "page", command="python scripts/leaderboard.py runs=x")
    assert "| **Net** | 5 | 2 | **62.50 ± 25.00** |" in text
    assert "| 75.00 | 50.00 | 100.00 | 50.00 | 37.50 | last epoch | 87.50 | 3 | 1.23 M | 10.0 min |" in text
    assert "*optimistic*" in text
    with (tmp_path / "page" / "leaderboard.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert tuple(row) == COLUMNS
    assert float(row["accuracy_mean"]) == pytest.approx(0.625) and float(row["accuracy_std"]) == pytest.approx(0.25)
    assert (row["folds"], row["seeds"], row["fold_5"]) == ("5", "2", "0.375")
    with Image.open(tmp_path / "page" / "leaderboard.png") as picture:
        assert picture.width == 1100 and len(picture.convert("L").getcolors(256)) > 20


def test_a_partial_set_says_so(tmp_path):
    write_run(tmp_path / "a", fold=1, right="10")
    text = write_page(leaderboard(runs_below(tmp_path)), tmp_path / "page", command="x")
    assert "(partial: 1 of 5 folds)" in text


# ---------------------------------------------------------------------- what must not be averaged


def test_one_fold_and_seed_twice_is_refused(tmp_path):
    write_run(tmp_path / "a", fold=1, right="11")
    write_run(tmp_path / "b", fold=1, right="11")
    with pytest.raises(DataError, match="same system with the same fold 1 and seed 0"):
        systems(runs_below(tmp_path))


def test_other_classes_are_refused(tmp_path):
    write_run(tmp_path / "a", fold=1, right="11")
    write_run(tmp_path / "b", fold=2, right="11", names=("bird", "cat", "dog"))
    with pytest.raises(DataError, match="other classes"):
        leaderboard(runs_below(tmp_path))


def test_one_clip_with_two_targets_is_refused(tmp_path):
    write_run(tmp_path / "a", fold=1, right="11")
    write_run(tmp_path / "b", fold=1, seed=1, right="11", targets=[1, 0])
    with pytest.raises(DataError, match=r"1-0\.wav has fold 1 and target 1 in .*, but fold 1 and target 0"):
        leaderboard(runs_below(tmp_path))


def test_a_run_without_predictions_is_refused_and_an_unfinished_one_is_known(tmp_path):
    (write_run(tmp_path / "a", fold=1, right="11") / "predictions.csv").unlink()
    with pytest.raises(DataError, match=r"no predictions at .*predictions\.csv"):
        runs_below(tmp_path)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "config.yaml").write_text("fold: 1\n")
    assert unfinished_runs(tmp_path) == [tmp_path / "b"]
    with pytest.raises(DataError, match="no finished run"):
        find_runs(tmp_path / "b")


# ---------------------------------------------------------------------- comparison and ensemble


def test_a_comparison_is_paired_clip_by_clip(tmp_path):
    a = [read_run(write_run(tmp_path / "a", fold=1, right="1111000000"))]
    b = [read_run(write_run(tmp_path / "b", fold=1, right="1001111111", model="B"))]
    found = compare.compare(a, b)
    assert (found.accuracy_a, found.accuracy_b, found.num_clips) == (0.4, 0.8, 10)
    assert found.difference == pytest.approx(0.4)
    assert (found.only_a, found.only_b) == (2, 6)
    assert found.p_value == pytest.approx(2 * binom.cdf(2, 8, 0.5))
    assert found.ci_low < 0.4 < found.ci_high
    # Clips of even number are cats: a has 2 of 5 right, b 4 of 5; of the dogs as many.
    assert found.classes == (("cat", 5, 0.4, 0.8), ("dog", 5, 0.4, 0.8))


def test_a_comparison_of_other_clips_is_refused(tmp_path):
    a = [read_run(write_run(tmp_path / "a", fold=1, right="11"))]
    b = [read_run(write_run(tmp_path / "b", fold=2, right="11", model="B"))]
    with pytest.raises(DataError, match="not in both"):
        compare.compare(a, b)


def test_an_ensemble_averages_probabilities_by_weight_whatever_the_order_of_clips(tmp_path):
    a = read_run(write_run(tmp_path / "a", fold=1, right="10"))
    b = read_run(write_run(tmp_path / "b", fold=1, right="01", model="B"))
    turned = replace(
        b.predictions,
        filenames=b.predictions.filenames[::-1],
        targets=b.predictions.targets[::-1],
        probs=b.predictions.probs[::-1],
    )
    found = ensemble.ensemble([[a], [replace(b, predictions=turned)]], weights=[3.0, 1.0])[1]
    np.testing.assert_allclose(found.probs, 0.75 * a.predictions.probs + 0.25 * b.predictions.probs)
    assert found.filenames == a.predictions.filenames
    assert (found.predicted == a.predictions.predicted).all()


def test_an_ensemble_wants_the_same_folds_and_clips_of_each_member(tmp_path):
    a = read_run(write_run(tmp_path / "a", fold=1, right="10"))
    other_fold = read_run(write_run(tmp_path / "b", fold=2, right="01"))
    fewer = read_run(write_run(tmp_path / "c", fold=1, right="0", model="C"))
    with pytest.raises(DataError, match="other folds"):
        ensemble.ensemble([[a], [other_fold]], weights=[1, 1])
    with pytest.raises(DataError, match="different clips of fold 1"):
        ensemble.ensemble([[a], [fewer]], weights=[1, 1])
