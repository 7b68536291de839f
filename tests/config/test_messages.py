"""What Hydra refuses is one line with exit status 2: the nearest that there is, or how to write it."""

import pytest

REFUSALS = {
    "a key": (["trainer.max_epoch=3"], "trainer.max_epoch: no such key; did you mean trainer.max_epochs?"),
    "a key without a section": (["fould=3"], "fould: no such key; did you mean fold?"),
    "a key of another section": (["batch_size=3"], "batch_size: no such key; did you mean loader.batch_size?"),
    "a key behind a plus": (["+trainer.max_epoch=3"], "trainer.max_epoch: no such key; did you mean trainer.max_epochs?"),
    "a section behind a plus": (["+foo.bar=1"], "foo: no such key; there are augment, checkpoint,"),
    "a key that is to go": (["~trainer.max_epoch"], "trainer.max_epoch: no such key; did you mean trainer.max_epochs?"),
    "an argument behind a plus": (["+model.chanels=[8]"], "model.chanels: no such key; did you mean model.channels?"),
    "a group": (["modle=melcnn"], "modle: no such key; did you mean model?"),
    "an option": (["model=melcn"], "model=melcn: no such option; did you mean model=melcnn?"),
    "an option like no other": (["model=x"], "model=x: no such option; there are audionet,"),
    "an experiment": (["experiment=quickstrat"], "experiment=quickstrat: no such option; did you mean experiment=quickstart?"),
    "a launcher": (["hydra/launcher=jobib"], "hydra/launcher=jobib: no such option; did you mean hydra/launcher=joblib?"),
    "an option chosen twice": (["+model=melcnn"], "model is chosen twice; leave out the plus sign"),
    "a key that is there": (["+seed=3"], "+seed: it is there already; leave out the plus sign"),
    "several values": (["fold=1,2"], "fold=1,2: several values; add -m to train with each, or write 'fold=[1,2]' for a list"),
    "no value": (["fold"], "fold: wanted key=value; write fold=..."),
    "no key": (["=3"], "=3: wanted key=value, the key is missing"),
    "another script": (["data.root=\u72ac"], """data.root=\u72ac: this value has to be quoted; write 'data.root="\u72ac"'"""),
    "an equals sign": (["data.root=a=b"], """write 'data.root="a=b"'"""),
    "a parenthesis": (["data.root=(a"], """write 'data.root="(a"'"""),
    "a bracket": (["data.root=[a"], """write 'data.root="[a"'"""),
    "a folder of options": (["--config-dir", "nowhere"], "nowhere' not found; give the folder of your own options"),
    "two flags": (["fold=1", "-m", "--cfg", "job", "seed=2"], "Only one of --run, --multirun, --cfg"),
    "a flag": (["--foo"], "unrecognized arguments: --foo"),
    "a target": (["model._target_=mynet.Net"], "model._target_=mynet.Net: no module named mynet"),
    "a class": (["model._target_=esc50.models.melcnn.Mel"], "esc50.models.melcnn has no Mel"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_it_is_one_line_with_advice(name, command, tmp_path):
    overrides, line = REFUSALS[name]
    ended = command("train.py", *overrides, cwd=tmp_path)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("error: ") and line in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize("script", ["precompute", "benchmark", "predict", "leaderboard"])
def test_every_script_says_it_so(script, command, tmp_path):
    ended = command(f"scripts/{script}.py", "fould=3", cwd=tmp_path)
    assert ended.status == 2
    assert ended.err.startswith("error: fould: no such key") and len(ended.err.splitlines()) == 1


def test_what_the_quoting_says_works(command, tmp_path):
    ended = command("train.py", "data=folder", 'data.root="a=b"', cwd=tmp_path)
    assert ended.err == "error: data.root=a=b: no such folder\n"


def test_arguments_of_lightnings_trainer_may_be_added(command, tmp_path):
    ended = command("train.py", "+trainer.limit_train_batches=2", "fold=9", cwd=tmp_path)
    assert ended.err == "error: fold=9: wanted a whole number from 1 to 5\n"


def test_whoever_wants_to_see_everything_does(command, tmp_path, monkeypatch):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    with pytest.raises(Exception, match="Could not override 'fould'"):
        command("train.py", "fould=3", cwd=tmp_path)
