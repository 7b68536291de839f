"""What an installation without extras does without is named in one line with the command that brings it, before long work."""

import logging
import sys

import pytest
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins

from esc50 import load
from esc50.benchmarks import profiler
from esc50.inference.web import Limits, answer_upload
from esc50.results.record import read_metrics
from esc50.runs import train as run

NO_MAPS = 'captum, which is not installed; pip install "esc50[explain]"'


@pytest.fixture
def without(monkeypatch):
    """Hide installed packages from whoever imports them."""

    def hide(*names: str) -> None:
        for name in names:
            for loaded in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
                monkeypatch.delitem(sys.modules, loaded)
            monkeypatch.setitem(sys.modules, name, None)

    return hide


@pytest.mark.parametrize(
    ("script", "settings", "package", "line"),
    [
        ("explain", ["input=any"], "captum", f"esc50 explain needs {NO_MAPS}"),
        ("serve", [], "gradio", 'esc50 serve needs gradio, which is not installed; pip install "esc50[web]"'),
        *(
            ("export", [], one, f'format=onnx needs {one}, which is not installed; pip install "esc50[export]"')
            for one in ("onnx", "onnxruntime", "onnxscript")
        ),
    ],
)
def test_a_command_refuses_before_it_reads_the_checkpoint(script, settings, package, line, command, without, tmp_path):
    (tmp_path / "any").mkdir()
    without(package)
    ended = command(f"scripts/{script}.py", "checkpoint=any", *settings, cwd=tmp_path)
    assert (ended.status, ended.out, ended.err) == (2, "", f"error: {line}\n")


def test_a_network_of_timm_is_refused_before_the_data_is_looked_at(tiny, command, without, tmp_path):
    without("timm")
    (tmp_path / "empty").mkdir()
    settings = [setting for setting in tiny if not setting.startswith("model.")]
    ended = command("train.py", *settings, "model=timm", "data.root=empty", "watch=none", cwd=tmp_path)
    assert ended.status == 2
    assert ended.err == 'error: a network of timm needs timm, which is not installed; pip install "esc50[timm]"\n'


@pytest.mark.parametrize(
    ("group", "option", "settings", "package"),
    [
        ("launcher", "joblib", ["hydra/launcher=joblib"], "hydra-joblib-launcher"),
        ("launcher", "submitit_local", ["hydra/launcher=submitit_local"], "hydra-submitit-launcher"),
        ("launcher", "submitit_slurm", ["hydra/launcher=submitit_slurm"], "hydra-submitit-launcher"),
        ("sweeper", "optuna", ["sweep=optuna"], "hydra-optuna-sweeper"),
    ],
)
def test_a_sweep_that_wants_a_plugin_names_it(group, option, settings, package, command, monkeypatch, tmp_path):
    Plugins.instance()  # registers the options of all that are there
    options = ConfigStore.instance().repo["hydra"][group]
    monkeypatch.setitem(
        ConfigStore.instance().repo["hydra"], group, {key: options[key] for key in options if key != f"{option}.yaml"}
    )
    ended = command("train.py", "-m", *settings, cwd=tmp_path)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == f'error: hydra/{group}={option} needs {package}, which is not installed; pip install "esc50[sweep]"\n'


@pytest.mark.parametrize("layer", ["null", "stem"])
def test_a_training_without_maps_says_so_once_and_scores_the_same(layer, compose, tiny, without, tmp_path, caplog, events):
    without("captum")
    panel = ("watch=none", "+watch/panels@watch.attention=attention", "watch.attention.every_n_epochs=1")
    with caplog.at_level(logging.WARNING, logger="esc50"):
        run.train(compose(*tiny, *panel, f"watch.attention.layer={layer}"), tmp_path)
    assert caplog.messages == [f"no maps in TensorBoard: the panel watch.attention needs {NO_MAPS}"]
    assert read_metrics(tmp_path)["clips"] == 6
    assert not [tag for tag in events(tmp_path / "tensorboard").tags["images"] if tag.startswith("attention")]


def test_the_page_answers_without_a_map(trained, sounds, without):
    model, path = load(trained), sounds / "hum" / "hum0-A.wav"
    without("captum")
    verdict, guesses, image, _ = answer_upload(model, Limits(max_megabytes=1, max_seconds=3), path, class_name=None)
    assert verdict == f"## {model.predict(path).label}\n\na map of where the network looks needs {NO_MAPS}"
    assert image is None and sum(guesses.values()) == pytest.approx(1)


def test_a_profile_without_py_spy_trains_all_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(profiler.shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(
        profiler, "TRAIN", (sys.executable, "-c", "import sys; sys.exit('trainer.profile=trace' not in sys.argv)")
    )
    monkeypatch.chdir(tmp_path)
    said = []
    assert profiler.profile([], show=said.append) == 0
    assert said == [
        'a flame graph needs py-spy, which is not installed; pip install "esc50[profile]". Training goes on with torch\'s own'
        " trace instead"
    ]
