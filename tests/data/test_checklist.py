"""Each fault is found in the clip that has it, and nowhere else."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from esc50.data.audio_facts import CLIPPED_RUN
from esc50.data.checklist import inspect
from esc50.data.clip import Clip
from esc50.data.folds import make_split
from esc50.data.tables import read_table

RATE = 8000
LEAKING = {"131943", "134049", "209698", "234879"}  # the recordings of ESC-50 that stand in two folds


def sound(seed: int, *, seconds: float = 1.0, rate: int = RATE) -> np.ndarray:
    return 0.5 * np.random.default_rng(seed).uniform(-1, 1, round(seconds * rate))


def int16(waveform: np.ndarray) -> np.ndarray:
    """Whole numbers are stored alike by every format; each rounds floats in its own way."""
    return np.round(32767 * waveform).astype(np.int16)


def clip(path: Path, *, fold: int = 1, target: int = 0, source: str | None = None) -> Clip:
    return Clip(
        filename=path.name, path=path, target=target, category=("cat", "dog")[target], fold=fold, source=source or path.name
    )


@pytest.fixture
def healthy(tmp_path: Path) -> list[Clip]:
    clips = []
    for fold in range(1, 6):
        for target in range(2):
            path = tmp_path / f"good-{fold}-{target}.wav"
            soundfile.write(path, sound(100 + 10 * fold + target), RATE)
            clips.append(clip(path, fold=fold, target=target))
    return clips


@pytest.fixture
def faulty(tmp_path: Path, healthy: list[Clip]) -> list[Clip]:
    """Healthy clips, and one or two clips with every fault, each of its own source."""
    loud, broken, later = sound(2), sound(3), sound(1)
    loud[100 : 100 + CLIPPED_RUN] = 1.0
    broken[7] = np.nan
    later[: RATE * 3 // 4] = 0
    quiet = 1e-3 * sound(6)
    files = {
        "silent.wav": np.zeros(RATE),
        "quiet.wav": quiet,
        "clipped.wav": loud,
        "empty.wav": np.zeros(0),
        "mostly_silent.wav": later,
        "short.wav": sound(4, seconds=0.31),
        "long.wav": sound(5, seconds=2.5),
    }
    for name, waveform in files.items():
        soundfile.write(tmp_path / name, waveform, RATE)
    soundfile.write(tmp_path / "nan.wav", broken, RATE, subtype="FLOAT")
    soundfile.write(tmp_path / "beyond.wav", 2.2 * sound(7), RATE, subtype="FLOAT")
    soundfile.write(tmp_path / "stereo48.wav", np.stack([sound(8, rate=48000), sound(9, rate=48000)], axis=1), 48000)
    soundfile.write(tmp_path / "opposite.wav", np.stack([sound(8), -sound(8)], axis=1), RATE)
    (tmp_path / "garbage.wav").write_bytes(b"<html>404 Not Found</html>" * 40)
    cut = (tmp_path / "good-1-0.wav").read_bytes()[:9000]
    (tmp_path / "cut.wav").write_bytes(cut)
    soundfile.write(tmp_path / "twin_a.wav", sound(20), RATE)
    shutil.copy(tmp_path / "twin_a.wav", tmp_path / "twin_b.wav")
    samples = int16(sound(21))
    soundfile.write(tmp_path / "same.wav", samples, RATE)
    soundfile.write(tmp_path / "same.flac", samples, RATE)
    soundfile.write(tmp_path / "padded.wav", np.pad(samples, (0, 99)), RATE)
    names = [*files, "nan.wav", "beyond.wav", "stereo48.wav", "opposite.wav", "garbage.wav", "cut.wav", "twin_a.wav"]
    return [
        *healthy,
        *(clip(tmp_path / name) for name in names),
        clip(tmp_path / "twin_b.wav", target=1),
        clip(tmp_path / "same.wav", fold=2),
        clip(tmp_path / "same.flac", fold=3),
        clip(tmp_path / "padded.wav", fold=2),
    ]


@pytest.fixture
def clips(faulty: list[Clip]) -> list[Clip]:
    """All of them, and one source, `tape`, has clips in the folds 3 and 4."""
    fold = {"short.wav": 3, "long.wav": 4}
    return [replace(one, fold=fold[one.filename], source="tape") if one.filename in fold else one for one in faulty]


def test_each_fault_is_found_by_name_and_only_where_it_is(clips):
    found = inspect(clips, progress=False)
    assert found.num_clips == found.num_with_audio == len(clips)
    assert set(found.unreadable) == {"garbage.wav", "cut.wav"}
    assert "Format not recognised" in found.unreadable["garbage.wav"]
    assert "cut short" in found.unreadable["cut.wav"]
    assert set(found.empty) == {"empty.wav"}
    assert found.non_finite == ("nan.wav",)
    assert set(found.silent) == {"silent.wav", "quiet.wav"}
    assert found.mostly_silent == ("mostly_silent.wav",)
    assert set(found.clipped) == {"clipped.wav", "beyond.wav"}
    assert found.channels_cancel == ("opposite.wav",)
    assert found.byte_identical == (("twin_a.wav", "twin_b.wav"),)
    assert [set(group) for group in found.content_identical] == [{"same.wav", "same.flac", "padded.wav"}]
    assert [set(group) for group in found.same_content_in_two_folds] == [{"same.wav", "same.flac", "padded.wav"}]
    assert [set(group) for group in found.same_content_in_two_classes] == [{"twin_a.wav", "twin_b.wav"}]
    assert found.sources_in_two_folds == {"tape": [3, 4]}
    assert not found.ok


def test_rates_channels_formats_and_lengths_are_counted(clips):
    found = inspect(clips, progress=False)
    num_measured = len(clips) - 3  # without the empty clip, the garbage and the one cut short
    assert found.sample_rates == {RATE: num_measured - 1, 48000: 1}
    assert found.channels == {1: num_measured - 2, 2: 2}
    assert found.formats == {"WAV PCM_16": num_measured - 3, "WAV FLOAT": 2, "FLAC PCM_16": 1}
    assert len(found.lengths.seconds) == num_measured
    assert (found.lengths.min, found.lengths.median, found.lengths.max) == (0.31, 1.0, 2.5)
    assert found.lengths.most_common == 1.0
    assert found.lengths.num_other == 3  # short, long, padded


def test_healthy_clips_have_no_problem_at_all(healthy):
    found = inspect(healthy, split=make_split(healthy, protocol="holdout", fold=5), sample_rate=RATE, progress=False)
    assert found.ok
    assert found.problems == ()
    assert {entry["level"] for entry in found.to_dict()["findings"]} == {"ok"}


@pytest.mark.parametrize("name", ["garbage.wav", "empty.wav", "nan.wav"])
def test_unusable_clips_make_it_not_ok(faulty, healthy, name):
    found = inspect([*healthy, next(one for one in faulty if one.filename == name)], progress=False)
    assert not found.ok
    assert len(found.problems) == 1 and name in found.problems[0]


@pytest.mark.parametrize("name", ["silent.wav", "clipped.wav", "opposite.wav"])
def test_doubtful_clips_are_a_warning(faulty, healthy, name):
    found = inspect([*healthy, next(one for one in faulty if one.filename == name)], progress=False)
    assert found.ok
    assert len(found.problems) == 1 and name in found.problems[0]


def test_leaks_and_duplicates_are_warnings(tmp_path, healthy):
    shutil.copy(healthy[0].path, tmp_path / "copy.wav")
    leak = clip(tmp_path / "copy.wav", fold=4, source=healthy[0].source)
    found = inspect([*healthy, leak], split=make_split([*healthy, leak], protocol="holdout", fold=5), progress=False)
    assert found.ok
    assert found.byte_identical == found.same_content_in_two_folds == (("good-1-0.wav", "copy.wav"),)
    assert found.sources_in_two_folds == {"good-1-0.wav": [1, 4]}
    assert found.sources_in_two_roles == {"good-1-0.wav": ["train", "val"]}
    assert len(found.problems) == 4  # equal files, in two folds; the source in two folds, on two sides


def test_counts_per_class_fold_and_role(healthy):
    few = [one for one in healthy if not (one.category == "dog" and one.fold in {2, 5})]
    found = inspect(few, split=make_split(few, protocol="holdout", fold=5), progress=False)
    cat, dog = found.classes
    assert (cat.name, cat.clips, cat.folds) == ("cat", 5, (1, 1, 1, 1, 1))
    assert (dog.name, dog.clips, dog.folds) == ("dog", 3, (1, 0, 1, 1, 0))
    assert cat.roles == {"train": 3, "val": 1, "test": 1}
    assert dog.roles == {"train": 2, "val": 1, "test": 0}
    assert any("without a clip in test: dog" in line for line in found.problems)


def test_json_holds_everything_and_survives_the_round_trip(clips):
    found = inspect(clips, split=make_split(clips, protocol="official", fold=1), progress=False).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["sources_in_two_folds"] == {"tape": [3, 4]}
    assert found["ok"] is False
    assert found["classes"][1]["roles"] == {"train": 4, "val": 0, "test": 2}
    assert found["sample_rates"]["48000"] == 1


def test_text_names_every_fault(clips):
    text = inspect(clips, progress=False).to_text()
    for words in (
        "garbage.wav",
        "cut.wav",
        "empty.wav",
        "nan.wav",
        "silent.wav",
        "quiet.wav",
        "clipped.wav",
        "beyond.wav",
        "opposite.wav",
        "mostly_silent.wav",
        "twin_a.wav = twin_b.wav",
        "same.flac",
        "tape (3, 4)",
        "48000 Hz (1)",
        "FLAC PCM_16 (1)",
    ):
        assert words in text
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 120


def test_the_columns_of_the_table_add_up(healthy):
    split = make_split(healthy, protocol="holdout", fold=5)
    lines = inspect(healthy, split=split, progress=False).to_text().splitlines()
    row = next(line.split() for line in lines if " dog " in line)
    total = next(line.split() for line in lines if line.split()[:1] == ["all"])
    assert row == ["1", "dog", "5", "1", "1", "1", "1", "1", "3", "1", "1"]
    assert total == ["all", "10", "2", "2", "2", "2", "2", "6", "2", "2"]


def test_without_audio_only_the_table_is_checked(tmp_path):
    clips = [
        clip(tmp_path / "audio" / f"{i}.wav", fold=1 + i % 5, source="tape" if i in {2, 3} else None, target=i % 2)
        for i in range(10)
    ]
    found = inspect(clips, progress=False)
    assert found.ok and found.num_with_audio == 0 and found.lengths is None
    assert found.sources_in_two_folds == {"tape": [3, 4]}
    assert f"no audio under {tmp_path / 'audio'}: only the table was checked" in found.to_dict()["findings"][1]["text"]
    assert "readable" not in found.to_text()
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()


def test_a_missing_file_among_present_ones_is_unreadable(tmp_path, healthy):
    found = inspect([*healthy, clip(tmp_path / "gone.wav")], progress=False)
    assert found.unreadable == {"gone.wav": "no such file"}
    assert found.num_with_audio == len(healthy)
    assert not found.ok


def test_many_unreadable_files_are_summed_up(tmp_path, healthy):
    found = inspect([*healthy, *(clip(tmp_path / f"gone{i}.wav") for i in range(30))], progress=False)
    assert len(found.unreadable) == 30
    assert len(found.problems) == 11 and found.problems[-1] == "20 more unreadable files"


def test_the_number_of_threads_changes_nothing(clips):
    one, four = (inspect(clips, num_workers=number, progress=False) for number in (1, 4))
    assert one == four


def test_a_progress_bar_with_estimate_goes_to_stderr(healthy, capfd):
    inspect(healthy)
    out, err = capfd.readouterr()
    assert out == ""
    assert "checking audio" in err and f"/{len(healthy)} [" in err and "<" in err


def test_silence_has_no_content_but_equal_silent_files_are_equal(tmp_path, healthy):
    for name, seconds in (("a.wav", 1), ("b.wav", 1), ("c.wav", 2)):
        soundfile.write(tmp_path / name, np.zeros(seconds * RATE), RATE)
    found = inspect([*healthy, *(clip(tmp_path / name) for name in ("a.wav", "b.wav", "c.wav"))], progress=False)
    assert found.byte_identical == (("a.wav", "b.wav"),)
    assert found.content_identical == ()


def test_the_four_leaking_recordings_of_esc50_are_found_exactly(shared):
    clips = read_table(shared / "esc50_meta")
    found = inspect(clips, split=make_split(clips, protocol="holdout", fold=5))
    assert set(found.to_dict()["sources_in_two_folds"]) == LEAKING
    assert found.num_with_audio == 0 and found.ok
    assert "only the table was checked" in found.to_text()
    assert {of.folds for of in found.classes} == {(8, 8, 8, 8, 8)} and len(found.classes) == 50


@pytest.mark.slow
def test_esc10_is_whole(shared):
    found = inspect(read_table(shared / "esc10", subset="esc10"), sample_rate=44100, progress=False)
    assert found.ok and found.num_with_audio == 400
    assert found.formats == {"OGG VORBIS": 400} and found.sample_rates == {44100: 400} and found.channels == {1: 400}
    assert found.silent == found.byte_identical == found.content_identical == ()
    assert found.sources_in_two_folds == {}
    # Vorbis rounds up to whole packets: 380 clips of 220,544 samples, the others between 160,704 and 319,296.
    assert found.lengths.num_other == 20
    lengths = [found.lengths.most_common, found.lengths.min, found.lengths.max]
    assert [round(seconds * 44100) for seconds in lengths] == [220544, 160704, 319296]
