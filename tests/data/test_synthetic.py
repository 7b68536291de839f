"""The synthetic data set: reproducible bytes, ESC-50's layout, never anything half-done or overwritten."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile

from esc50.data import synthetic
from esc50.data.clip import class_names
from esc50.data.folds import NUM_FOLDS, leaking_sources
from esc50.data.synthetic_sounds import PATTERNS
from esc50.data.tables import read_table
from esc50.errors import ConfigError, DataError

SMALL = {"num_classes": 3, "num_clips": 30, "seconds": 0.5, "sample_rate": 16000}


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def mtimes(root: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in [root, *root.rglob("*")]}


def written(root, **parameters):
    """The clips of a set that may be written at `root`."""
    return synthetic.prepare(root, **parameters, creates=root)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_sounds(tmp_path):
    for name, seed in (("one", 3), ("two", 3), ("other", 4)):
        written(tmp_path / name, **SMALL, seed=seed)
    one, two, other = (contents(tmp_path / name) for name in ("one", "two", "other"))
    assert one == two
    assert one.keys() == other.keys()
    assert all(one[name] != other[name] for name in one if name.endswith(".wav"))
    assert len({data for name, data in one.items() if name.endswith(".wav")}) == SMALL["num_clips"]


def test_several_threads_write_the_same_bytes_as_one(tmp_path, monkeypatch):
    for number in (1, 4):
        monkeypatch.setattr(synthetic.os, "cpu_count", lambda number=number: number)
        written(tmp_path / str(number), **SMALL)
    assert contents(tmp_path / "1") == contents(tmp_path / "4")


def test_a_folder_that_is_not_to_be_created_is_only_read(tmp_path):
    for creates in (None, tmp_path / "other"):
        with pytest.raises(DataError, match="no metadata table"):
            synthetic.prepare(tmp_path / "set", **SMALL, creates=creates)
    assert list(tmp_path.iterdir()) == []
    clips = written(tmp_path / "set", **SMALL)
    assert synthetic.prepare(tmp_path / "set", **SMALL) == clips


def test_layout_is_that_of_esc50(tmp_path):
    clips = written(tmp_path / "set", **SMALL)
    assert clips == read_table(tmp_path / "set")
    assert class_names(clips) == tuple(PATTERNS)[:3]
    for clip in clips:
        assert clip.filename == f"{clip.fold}-{clip.source}-{clip.take}-{clip.target}.wav"
        info = soundfile.info(clip.path)
        assert (info.channels, info.samplerate, info.subtype, info.frames) == (1, 16000, "PCM_16", 8000)
    assert {path.name for path in (tmp_path / "set" / "audio").iterdir()} == {clip.filename for clip in clips}
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_folds_are_balanced_and_no_source_lies_in_two(tmp_path):
    clips = written(tmp_path / "set", **SMALL | {"num_clips": 60})
    counts = Counter((clip.fold, clip.target) for clip in clips)
    assert counts == {(fold, target): 4 for fold in range(1, NUM_FOLDS + 1) for target in range(3)}
    assert leaking_sources(clips) == {}
    takes = Counter(clip.source for clip in clips)
    assert set(takes.values()) == {1, 2}
    for source, num_takes in takes.items():
        assert [clip.take for clip in clips if clip.source == source] == ["A", "B"][:num_takes]
    assert len({(clip.source, clip.category) for clip in clips}) == len(takes)


def test_no_clip_is_silent_or_clipped(tmp_path):
    for clip in written(tmp_path / "set", num_classes=10, num_clips=50, seconds=1.0, sample_rate=8000):
        samples, _ = soundfile.read(clip.path)
        assert 0.09 < np.abs(samples).max() < 0.9
        assert np.mean(samples == 0) < 0.2


def test_a_complete_set_is_used_as_it_is(tmp_path):
    first = written(tmp_path / "set", **SMALL)
    before = mtimes(tmp_path / "set")
    assert written(tmp_path / "set", **SMALL) == first
    assert mtimes(tmp_path / "set") == before


def test_other_parameters_replace_the_set(tmp_path):
    written(tmp_path / "set", **SMALL)
    written(tmp_path / "set", **SMALL | {"num_clips": 15})
    written(tmp_path / "fresh", **SMALL | {"num_clips": 15})
    assert contents(tmp_path / "set") == contents(tmp_path / "fresh")
    assert {path.name for path in tmp_path.iterdir()} == {"set", "fresh"}


@pytest.mark.parametrize("damaged", ["audio", "meta"])
@pytest.mark.parametrize("left", [None, 100])
def test_a_damaged_set_is_made_whole(tmp_path, damaged, left):
    clips = written(tmp_path / "set", **SMALL)
    before = contents(tmp_path / "set")
    victim = max((tmp_path / "set" / damaged).iterdir())
    if left is None:
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[:left])
    assert written(tmp_path / "set", **SMALL) == clips
    assert contents(tmp_path / "set") == before


def test_a_set_of_an_older_version_is_replaced(tmp_path):
    written(tmp_path / "set", **SMALL)
    before = contents(tmp_path / "set")
    marker = json.loads(before["synthetic.json"])
    marker["parameters"]["version"] -= 1
    (tmp_path / "set" / "synthetic.json").write_text(json.dumps(marker))
    written(tmp_path / "set", **SMALL)
    assert contents(tmp_path / "set") == before


@pytest.mark.parametrize("marker", [None, "not json", "[]", "{}"])
def test_a_folder_of_somebody_else_is_refused(tmp_path, marker):
    (tmp_path / "mine.txt").write_text("precious")
    if marker is not None:
        (tmp_path / "synthetic.json").write_text(marker)
    before = contents(tmp_path)
    with pytest.raises(DataError, match="not part of a synthetic data set"):
        written(tmp_path, **SMALL)
    assert contents(tmp_path) == before


def test_files_added_to_our_folder_are_not_thrown_away(tmp_path):
    written(tmp_path / "set", **SMALL)
    (tmp_path / "set" / "audio" / "1-100000-Z-0.wav").write_text("precious")
    before = contents(tmp_path / "set")
    written(tmp_path / "set", **SMALL)
    with pytest.raises(DataError, match="1-100000-Z-0"):
        written(tmp_path / "set", **SMALL, seed=1)
    assert contents(tmp_path / "set") == before


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "set").write_text("precious")
    with pytest.raises(DataError, match="is a file"):
        written(tmp_path / "set", **SMALL)


def test_an_empty_folder_and_a_link_to_one_are_filled(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "set").symlink_to(tmp_path / "disk")
    clips = written(tmp_path / "set", **SMALL)
    assert (tmp_path / "set").is_symlink()
    assert len(list((tmp_path / "disk" / "audio").iterdir())) == len(clips)


def _interrupt_after(num_clips: int, monkeypatch) -> None:
    left, write = iter(range(num_clips)), synthetic._write_clip

    def write_or_stop(clip, **settings):
        if next(left, None) is None:
            raise KeyboardInterrupt
        write(clip, **settings)

    monkeypatch.setattr(synthetic, "_write_clip", write_or_stop)


def test_an_interrupted_run_leaves_nothing(tmp_path, monkeypatch):
    _interrupt_after(5, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        written(tmp_path / "set", **SMALL)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_replacement_leaves_the_old_set(tmp_path, monkeypatch):
    written(tmp_path / "set", **SMALL)
    before = contents(tmp_path)
    _interrupt_after(5, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        written(tmp_path / "set", **SMALL, seed=1)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("old", [None, SMALL | {"seed": 9}])
def test_a_set_that_appears_meanwhile_is_used(tmp_path, monkeypatch, old):
    if old:
        written(tmp_path / "set", **old)
    install = synthetic._install

    def be_late(staging, place, parameters):
        monkeypatch.setattr(synthetic, "_install", install)
        written(place, **SMALL)
        be_late.times = mtimes(place)
        install(staging, place, parameters)

    monkeypatch.setattr(synthetic, "_install", be_late)
    assert len(written(tmp_path / "set", **SMALL)) == SMALL["num_clips"]
    assert mtimes(tmp_path / "set") == be_late.times
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_classes": 1},
        {"num_classes": len(PATTERNS) + 1},
        {"num_clips": 0},
        {"num_clips": 31},
        {"seconds": 0.0},
        {"seconds": float("nan")},
        {"sample_rate": 4000},
        {"seed": -1},
    ],
)
def test_impossible_parameters_are_named(tmp_path, wrong):
    with pytest.raises(ConfigError, match=f"data.{next(iter(wrong))} is"):
        written(tmp_path / "set", **SMALL | wrong)
    assert list(tmp_path.iterdir()) == []


def test_the_suggested_number_of_clips_is_the_nearest_that_works(tmp_path):
    with pytest.raises(ConfigError, match=r"such as 30\Z"):
        written(tmp_path / "set", **SMALL | {"num_clips": 31})


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot write synthetic data to") as raised:
        written(tmp_path / "file" / "set", **SMALL)
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_the_mean_spectrum_does_not_tell_the_classes_apart(tmp_path):
    """A net that hears time must have something to win: at most 75 % for a linear model without time, on fold 5."""
    import librosa
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    clips = written(tmp_path / "set")
    spectra = []
    for clip in clips:
        samples, sample_rate = soundfile.read(clip.path, dtype="float32")
        mel = librosa.feature.melspectrogram(y=samples, sr=sample_rate, n_fft=2048, hop_length=1024, n_mels=128)
        spectra.append((10 * np.log10(np.maximum(mel, 1e-10))).mean(axis=1))
    features, targets = np.stack(spectra), np.array([clip.target for clip in clips])
    folds = np.array([clip.fold for clip in clips])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    model.fit(features[folds <= 3], targets[folds <= 3])
    assert model.score(features[folds <= 3], targets[folds <= 3]) > 0.5  # it does learn what it is shown
    assert model.score(features[folds == 5], targets[folds == 5]) <= 0.75
