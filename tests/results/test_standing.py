"""A score is quoted for the recipe that it was measured with and for no other."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from esc50.errors import ConfigError, DataError
from esc50.results.predictions import Predictions, write_predictions
from esc50.results.standing import cross_validated

NAMES = ("cat", "dog")
RECIPE = {
    "model": {"_target_": "models.Net", "dropout": 0.2},
    "augment": {},
    "trainer": {"max_epochs": 3},
    "features": {"kind": "mel_png"},
}
REFIT = RECIPE | {
    "fold": 5,
    "seed": 0,
    "split": {"protocol": "all"},
    "paths": {"data": "elsewhere"},
    "watch": None,
    "scored_by": "sweep",
}


def write_run(folder: Path, *, fold: int, right: str, seed: int = 0, protocol: str = "official", recipe=RECIPE) -> None:
    """A run whose clips, all cats, are right or wrong as the word `right` says: `10` is one right, one wrong clip."""
    probs = np.array([[0.7, 0.3] if hit == "1" else [0.3, 0.7] for hit in right])
    write_predictions(
        Predictions(
            filenames=tuple(f"{fold}-{i}.wav" for i in range(len(right))),
            folds=(fold,) * len(right),
            targets=np.zeros(len(right), dtype=np.int64),
            probs=probs,
            class_names=NAMES,
        ),
        folder / "predictions.csv",
    )
    config = recipe | {"fold": fold, "seed": seed, "split": {"protocol": protocol}, "paths": {"data": str(folder)}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    (folder / "metrics.json").write_text(json.dumps({"protocol": protocol, "fold": fold, "seed": seed}), encoding="utf-8")


def test_the_numbers_are_those_of_the_folds_with_seeds_averaged_first(tmp_path):
    for fold, right in enumerate(("1110", "1100", "1111", "1010", "1000"), start=1):
        write_run(tmp_path / f"{fold}-1", fold=fold, seed=1, right=right)
        write_run(tmp_path / f"{fold}-2", fold=fold, seed=2, right="1001" if fold == 5 else right)
    found, names = cross_validated(tmp_path, REFIT)
    folds = [0.75, 0.5, 1.0, 0.5, (0.25 + 0.5) / 2]
    assert found["accuracy_mean"] == pytest.approx(np.mean(folds))
    assert found["accuracy_std"] == pytest.approx(np.std(folds, ddof=1))
    assert 0.3 < found["ci_low"] < found["accuracy_mean"] < found["ci_high"] < 0.9
    assert {key: found[key] for key in ("folds", "seeds", "selection", "place")} == {
        "folds": 5,
        "seeds": 2,
        "selection": "last epoch",
        "place": str(tmp_path),
    }
    assert names == NAMES
    assert json.loads(json.dumps(found)) == found  # plain data, as a checkpoint wants it


def test_a_single_fold_has_no_spread_and_how_its_epoch_was_chosen_is_told(tmp_path):
    write_run(tmp_path / "a", fold=3, right="1100", protocol="holdout")
    found, _ = cross_validated(tmp_path, REFIT)
    assert (found["accuracy_mean"], found["accuracy_std"], found["folds"]) == (0.5, None, 1)
    assert found["selection"] == "best epoch on a validation fold"


def test_of_several_recipes_in_one_place_the_same_is_taken(tmp_path):
    write_run(tmp_path / "a", fold=1, right="11", recipe=RECIPE | {"trainer": {"max_epochs": 9}})
    write_run(tmp_path / "b", fold=1, right="10")
    write_run(tmp_path / "c", fold=1, right="00", recipe=RECIPE | {"augment": {"mix": {"mixup": {"alpha": 0.2}}}})
    assert cross_validated(tmp_path, REFIT)[0]["accuracy_mean"] == 0.5


def test_another_recipe_is_refused_with_the_keys_of_the_nearest(tmp_path):
    write_run(
        tmp_path / "a", fold=1, right="11", recipe=RECIPE | {"model": {"_target_": "models.Other"}, "trainer": {"max_epochs": 9}}
    )
    write_run(
        tmp_path / "b",
        fold=1,
        right="11",
        recipe=RECIPE | {"model": {"_target_": "models.Net", "dropout": 0.5}, "trainer": {"max_epochs": 9}},
    )
    with pytest.raises(ConfigError) as caught:
        cross_validated(tmp_path, REFIT)
    assert str(caught.value) == (
        f"scored_by={tmp_path}: its runs were trained with another model.dropout, trainer.max_epochs; a"
        " score stands only for the recipe it was measured with"
    )


def test_runs_that_tested_nothing_have_no_score_to_quote(tmp_path):
    write_run(tmp_path / "a", fold=1, right="11", protocol="all")
    (tmp_path / "a" / "predictions.csv").unlink()
    with pytest.raises(DataError, match="its runs tested nothing; give the folder of a cross-validation"):
        cross_validated(tmp_path, REFIT)
    write_run(tmp_path / "b", fold=2, right="10")  # beside one that did, it is passed over
    assert cross_validated(tmp_path, REFIT)[0]["folds"] == 1


def test_a_place_without_runs_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"no finished run at or below "):
        cross_validated(tmp_path, REFIT)
