"""scripts/explain.py draws the map of any recording from a checkpoint alone."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from esc50.config.door import check_command
from esc50.errors import ConfigError, DataError
from esc50.inference.explanations import pictures_of
from esc50.inference.recordings import recordings_of


@pytest.fixture
def place(sounds, tmp_path):
    """A folder with a recording of each class, one of them in a subfolder, and files that are none."""
    (tmp_path / "in" / "more").mkdir(parents=True)
    for name, target in (("hiss/hiss0-A.wav", "hiss0-A.wav"), ("hum/hum0-A.wav", "more/hum0-A.wav")):
        (tmp_path / "in" / target).write_bytes((sounds / name).read_bytes())
    (tmp_path / "in" / "notes.txt").write_text("nothing to hear")
    (tmp_path / "in" / "._hiss0-A.wav").write_bytes(b"of another system")
    return tmp_path


def size_and_colors(path) -> tuple[tuple[int, int], int]:
    with Image.open(path) as image:
        return image.size, len(np.unique(np.asarray(image.convert("RGB")).reshape(-1, 3), axis=0))


def test_a_file_becomes_a_picture_in_the_run_folder_and_its_path_is_logged(trained, sounds, command, tmp_path):
    ended = command("scripts/explain.py", f"checkpoint={trained}", f"input={sounds}/whistle/whistle3-A.wav", cwd=tmp_path)
    assert (ended.status, ended.err) == (0, "")
    (made,) = (tmp_path / "outputs" / "explain").iterdir()
    (picture,) = made.glob("*.png")
    assert picture.name == "whistle3-A.png"
    size, colors = size_and_colors(picture)
    assert size == (1150, 290) and colors > 1000
    (line,) = ended.out.splitlines()
    assert line.endswith(f"map in {picture}") and f"{sounds}/whistle/whistle3-A.wav: " in line


def test_a_folder_has_a_picture_of_each_recording_and_an_error_line_for_what_is_none(trained, place, command):
    (place / "in" / "broken.wav").write_bytes(b"RIFFnothing")
    (place / "in" / "phone.m4a").write_bytes(b"other audio")
    ended = command(
        "scripts/explain.py", f"checkpoint={trained}/checkpoints/last.ckpt", "input=in", "hydra.run.dir=maps", cwd=place
    )
    assert ended.status == 1
    pictures = {path.relative_to(place / "maps").as_posix() for path in (place / "maps").rglob("*.png")}
    assert pictures == {"hiss0-A.png", "more/hum0-A.png"}
    errors = ended.err.splitlines()
    assert len(errors) == 2 and errors[0].startswith("error: in/broken.wav: ") and errors[1].startswith("error: in/phone.m4a: ")
    assert "Traceback" not in ended.err + ended.out


def test_the_picture_is_that_of_the_class_asked_for(trained, place, command, monkeypatch):
    from esc50.inference import explanations as explanation

    seen = []
    original = explanation.draw_maps
    monkeypatch.setattr(explanation, "draw_maps", lambda clips, recipe: (seen.extend(clips), original(clips, recipe))[1])
    for number, setting in enumerate(["class=hum", "class=whistle", "class=null", "layer=stem"]):
        ended = command(
            "scripts/explain.py",
            f"checkpoint={trained}",
            "input=in/hiss0-A.wav",
            setting,
            f"hydra.run.dir=maps{number}",
            cwd=place,
        )
        assert ended.status == 0, ended.err
    assert [clip.explained for clip in seen[:2]] == ["hum", "whistle"]
    best = max(("hiss", "hum", "whistle"), key=lambda name: {clip.explained: clip.prob for clip in seen}.get(name, 0))
    assert seen[2].explained == seen[3].explained == best and seen[2].prob >= 1 / 3
    assert not np.array_equal(seen[0].map, seen[1].map)
    assert not np.array_equal(seen[2].map, seen[3].map) and seen[3].map.shape == seen[2].map.shape == (32, 26)


def test_a_long_recording_has_a_row_for_each_of_its_most_telling_windows(trained, sounds, tmp_path, command, monkeypatch):
    from esc50.inference import explanations as explanation

    parts = [soundfile.read(sounds / name)[0][:4000] for name in ("hum/hum0-A.wav", "hiss/hiss0-A.wav", "hum/hum1-A.wav")]
    soundfile.write(tmp_path / "long.wav", np.concatenate(parts), 8000)
    seen = []
    original = explanation.draw_maps
    monkeypatch.setattr(explanation, "draw_maps", lambda clips, recipe: (seen.append(clips), original(clips, recipe))[1])
    for rows in (2, 6):
        ended = command(
            "scripts/explain.py", f"checkpoint={trained}", "input=long.wav", "class=hum", f"rows={rows}", cwd=tmp_path
        )
        assert ended.status == 0, ended.err
    few, whole = seen
    assert [clip.name for clip in whole] == ["long.wav, 0.0-0.5 s", "long.wav, 0.5-1.0 s", "long.wav, 1.0-1.5 s"]
    least = min(whole, key=lambda clip: clip.prob)
    assert [clip.name for clip in few] == [clip.name for clip in whole if clip is not least]
    assert {clip.explained for clip in whole} == {"hum"}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("class=whistl", "class=whistl: did you mean whistle? the model knows hiss, hum, whistle"),
        ("class=dog", "class=dog: the model knows hiss, hum, whistle"),
        ("class=3", "class=3: the model knows hiss, hum, whistle"),
        ("layer=blokcs", "layer=blokcs: the model has no layer of that name that makes a feature map; did you mean blocks?"),
        ("input=nowhere", "input=nowhere: no such file or folder"),
        ("input=empty", "no audio files in empty; they end in "),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(setting, message, trained, place, command):
    (place / "empty").mkdir()
    given = [f"checkpoint={trained}", *(["input=in"] if not setting.startswith("input") else []), setting]
    ended = command("scripts/explain.py", *given, "hydra.run.dir=maps", cwd=place)
    assert ended.status == 2 and ended.err.startswith(f"error: {message}") and len(ended.err.splitlines()) == 1
    assert not list((place / "maps").rglob("*.png"))


def test_what_is_missing_is_named_at_once(compose, sounds):
    for overrides, problems in (
        (
            [],
            [
                "checkpoint needs a value; write checkpoint=a run folder or checkpoint file",
                "input needs a value; write input=an audio file, a folder of them, or - for a recording on stdin",
            ],
        ),
        ([f"checkpoint={sounds}", "input=/no/such"], ["input=/no/such: no such file or folder"]),
        (
            [f"checkpoint={sounds}", f"input={sounds}", "class=[hum]", "layer={a: 1}"],
            ["class=['hum']: wanted a name or null", "layer={'a': 1}: wanted a name or null"],
        ),
    ):
        with pytest.raises(ConfigError) as caught:
            check_command(compose(*overrides, name="explain"), "explain")
        assert [line.strip() for line in str(caught.value).splitlines()][-len(problems) :] == problems
    check_command(compose(f"checkpoint={sounds}", f"input={sounds}", name="explain"), "explain")


def test_recordings_of_one_name_have_pictures_of_their_own(tmp_path):
    for name in ("a.wav", "a.mp3", "b.flac", ".hidden/c.wav", "__MACOSX/d.wav", "e.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with recordings_of(str(tmp_path)) as names:
        places = {path.name: place.as_posix() for path, place in pictures_of(names, tmp_path).items()}
    assert places == {"a.mp3": "a.png", "a.wav": "a.wav.png", "b.flac": "b.png"}
    with recordings_of(str(tmp_path / "e.txt")) as names:  # a file is taken whatever its name
        assert pictures_of(names, tmp_path / "e.txt") == {tmp_path / "e.txt": Path("e.png")}
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no audio files"), recordings_of(str(tmp_path / "empty")):
        pass
