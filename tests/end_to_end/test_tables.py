"""The scripts that read finished runs: what they leave, and what they refuse in one line."""

import pytest

from esc50.results.predictions import read_predictions


@pytest.fixture(scope="module")
def sweeps(command, tiny, tmp_path_factory):
    """Two systems on two folds each."""
    place = tmp_path_factory.mktemp("sweeps")
    for name, channels in (("small", "[8,16]"), ("large", "[16,32]")):
        settings = [part for part in tiny if not part.startswith("model.channels")]
        ended = command(
            "train.py",
            "sweep=folds",
            "fold=1,2",
            *settings,
            f"model.channels={channels}",
            "watch=none",
            "trainer.max_epochs=1",
            f"hydra.sweep.dir={name}",
            cwd=place,
        )
        assert ended.status == 0, ended.err
    return place


def test_a_leaderboard_has_both_systems_and_is_printed_and_written(sweeps, command):
    ended = command("scripts/leaderboard.py", "runs=[small,large]", "hydra.run.dir=board", cwd=sweeps)
    assert ended.status == 0, ended.err
    assert {path.name for path in (sweeps / "board").iterdir()} >= {"leaderboard.md", "leaderboard.csv", "leaderboard.png"}
    assert (sweeps / "board" / "leaderboard.md").read_text(encoding="utf-8") in ended.out
    assert ended.out.count("| **MelCNN, model.channels=") == 2


def test_a_comparison_and_an_ensemble_are_printed_and_written(sweeps, command):
    ended = command("scripts/compare.py", "a=small", "b=larg*/fold_*", "hydra.run.dir=compared", cwd=sweeps)
    assert ended.status == 0, ended.err
    assert (sweeps / "compared" / "comparison.md").read_text(encoding="utf-8") in ended.out
    assert "12 clips of folds 1, 2, paired" in ended.out
    ended = command("scripts/ensemble.py", "runs=[small,large]", "weights=[1,3]", "hydra.run.dir=averaged", cwd=sweeps)
    assert ended.status == 0, ended.err
    assert "| **ensemble** |" in ended.out
    assert len(read_predictions(sweeps / "averaged" / "fold_2" / "predictions.csv").filenames) == 6


@pytest.mark.parametrize(
    ("script", "settings", "message"),
    [
        ("leaderboard", [], "runs needs a value"),
        ("leaderboard", ["runs=nowhere"], "runs=nowhere: no such folder"),
        ("leaderboard", ["runs=empty"], "no finished run at or below empty"),
        ("leaderboard", ["runs=[small,copy]"], "the same system with the same fold"),
        ("compare", ["a=small", "b=."], "holds 2 systems"),
        ("compare", ["a=small", "b=one"], "not in both"),
        ("ensemble", ["runs=[small,large]", "weights=[1]"], "wanted 2 numbers above 0"),
        ("ensemble", ["runs=[small,one]"], "other folds"),
    ],
)
def test_what_cannot_be_put_together_is_one_line(script, settings, message, sweeps, command, tmp_path):
    import shutil

    for name in ("small", "large"):
        shutil.copytree(sweeps / name, tmp_path / name)
    (tmp_path / "empty").mkdir()
    if "copy" in str(settings):
        shutil.copytree(sweeps / "small", tmp_path / "copy")
    shutil.copytree(next((sweeps / "large").glob("fold_1*")), tmp_path / "one" / "fold_1")
    if "b=." in settings:
        shutil.rmtree(tmp_path / "one")
    ended = command(f"scripts/{script}.py", *settings, "hydra.run.dir=out", cwd=tmp_path)
    assert ended.status == 2
    (line,) = (line for line in ended.err.splitlines() if line.startswith("error: "))
    assert message in line
