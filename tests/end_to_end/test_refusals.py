"""Mistakes that would otherwise cost a person time: each is one line, found before the long work."""

import shutil

import pytest

from esc50.config.door import check, check_command
from esc50.errors import ConfigError, DataError, readable_errors


def refused(command, tiny, tmp_path, *overrides: str) -> str:
    """The one line on stderr of a training that is refused with exit status 2."""
    ended = command("train.py", *tiny, "watch=none", *overrides, f"hydra.run.dir={tmp_path / 'run'}", cwd=tmp_path)
    assert ended.status == 2 and "Traceback" not in ended.err
    lines = [line for line in ended.err.splitlines() if line.startswith("error:")]
    assert len(lines) == 1
    return lines[0]


def test_one_folder_of_sounds_is_no_task(command, tiny, sounds, tmp_path):
    shutil.copytree(sounds / "hum", tmp_path / "mine" / "hum")
    line = refused(command, tiny, tmp_path, f"data.root={tmp_path / 'mine'}")
    assert "one class only, hum" in line


@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        (["model.name=resnet999"], "torchvision has no such classifier"),
        (["model.name=resnet18", "model.weights=IMAGENET9"], "IMAGENET1K_V1"),
    ],
)
def test_an_unknown_network_is_refused_before_the_data_is_looked_at(overrides, part, command, tiny, tmp_path):
    """The channels of the small default model are no key of this one."""
    settings = [setting for setting in tiny if not setting.startswith("model.")]
    (tmp_path / "empty").mkdir()
    line = refused(command, settings, tmp_path, "model=torchvision", *overrides, f"data.root={tmp_path / 'empty'}")
    assert part in line


def test_images_too_small_for_the_network_are_refused(command, tiny, tmp_path):
    settings = [setting for setting in tiny if not setting.startswith("model.")]
    line = refused(command, settings, tmp_path, "model=torchvision", "model.name=alexnet", "model.weights=null")
    assert "32 mel bands x 26 frames" in line


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_bad_file_met_by_a_loaders_worker_is_one_line(shell, tiny, sounds, tmp_path):
    shutil.copytree(sounds, tmp_path / "mine")
    (tmp_path / "mine" / "hum" / "hum3-A.wav").write_bytes(b"<html>404</html>")
    ended = shell(
        "train.py",
        *tiny,
        "watch=none",
        f"data.root={tmp_path / 'mine'}",
        "features.read=compute",
        "loader.num_workers=1",
        "features.normalize=none",
        f"hydra.run.dir={tmp_path / 'run'}",
        cwd=tmp_path,
    )
    assert ended.status == 2 and "Traceback" not in ended.err
    assert [line for line in ended.err.splitlines() if line.startswith("error:") and "hum3-A.wav" in line]


def test_the_wrapping_of_a_worker_is_taken_off(capsys):
    wrapped = (
        "Caught DataError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n  File ...\n"
        "esc50.errors.DataError: a.wav: holds no samples\n"
    )
    with pytest.raises(SystemExit), readable_errors():
        raise DataError(wrapped)
    assert capsys.readouterr().err == "error: a.wav: holds no samples\n"


@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        (["features.colormap=purpleish"], "no such colour map"),
        (["features=logmel", "features.colormap=magma"], "only features=mel_png"),
        (["features.seconds=1e-6"], "0 samples"),
        (["features.stages=[]"], "features.stages"),
        (["model.input=smell"], "model.input=smell"),
    ],
)
def test_values_that_cannot_work_are_named(overrides, part, compose, sounds):
    with pytest.raises(ConfigError, match=part.replace("(", r"\(")):
        check(compose("data=folder", f"data.root={sounds}", *overrides))


def test_a_checkpoint_given_as_a_number_is_looked_for_like_any_other(compose):
    with pytest.raises(ConfigError, match="checkpoint=123: no such file or folder"):
        check_command(compose("checkpoint=123", name="evaluate"), "evaluate")
