"""The list of clips: ESC-50's table and folders of sound are read as they are, or refused in one line."""

import logging
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from esc50.data.clip import Clip, class_names
from esc50.data.folders import read_folder
from esc50.data.tables import read_table
from esc50.errors import DataError

HEADER = "filename,fold,target,category,esc10,src_file,take\n"
TAKES = r"(?P<source>.+?)(-(?P<take>[A-Z]))?"


def write_table(root: Path, text: str, encoding: str = "utf-8") -> None:
    path = root / "meta" / "esc50.csv"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding=encoding)


def folder(root: Path, *names: str) -> Path:
    """Empty files: a listing looks at names alone."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def listing(root: Path, source_pattern: str = TAKES) -> tuple[Clip, ...]:
    return read_folder(root, source_pattern=source_pattern)


@contextmanager
def refused(match: str):
    with pytest.raises(DataError, match=match) as caught:
        yield
    assert "\n" not in str(caught.value)


def test_esc50_is_what_its_author_says(shared):
    clips = read_table(shared / "esc50_meta")
    assert len(clips) == 2000
    assert Counter((clip.category, clip.fold) for clip in clips) == {
        (category, fold): 8 for category in class_names(clips) for fold in range(1, 6)
    }
    assert len(class_names(clips)) == 50 and class_names(clips)[:3] == ("dog", "rooster", "pig")
    clip = next(clip for clip in clips if clip.filename == "5-234879-B-1.wav")
    assert clip == Clip(
        filename=clip.filename,
        path=shared / "esc50_meta" / "audio" / clip.filename,
        target=1,
        category="rooster",
        fold=5,
        source="234879",
        take="B",
        esc10=True,
    )


@pytest.mark.parametrize("root", ["esc50_meta", "esc10"])
def test_the_targets_of_esc10_are_contiguous_by_name(shared, root):
    clips = read_table(shared / root, subset="esc10")
    assert len(clips) == 400 and all(clip.esc10 for clip in clips)
    assert class_names(clips) == (
        "chainsaw",
        "clock_tick",
        "crackling_fire",
        "crying_baby",
        "dog",
        "helicopter",
        "rain",
        "rooster",
        "sea_waves",
        "sneezing",
    )
    assert set(Counter((clip.target, clip.fold) for clip in clips).values()) == {8}


def test_a_table_with_gaps_in_its_targets_is_renumbered_by_name(tmp_path):
    write_table(tmp_path, HEADER + "a.wav,1,41,saw,True,a,A\nb.wav,2,7,dog,False,b,A\nc.wav,3,41,saw,True,c,A\n")
    assert [(clip.target, clip.category) for clip in read_table(tmp_path)] == [(1, "saw"), (0, "dog"), (1, "saw")]
    assert class_names(read_table(tmp_path, subset="esc10")) == ("saw",)


def test_a_table_keeps_its_own_targets_where_they_are_contiguous(tmp_path):
    write_table(tmp_path, HEADER + "a.wav,1,0,saw,True,a,A\nb.wav,2,1,dog,True,b,A\n")
    assert class_names(read_table(tmp_path)) == ("saw", "dog")
    assert class_names(read_table(tmp_path, subset="esc10")) == ("dog", "saw")


def test_a_table_saved_by_a_spreadsheet_is_read(tmp_path):
    write_table(tmp_path, HEADER + "épée 1.wav,1,0,dog,TRUE,a,A\n\n", encoding="utf-8-sig")
    (clip,) = read_table(tmp_path)
    assert clip.filename == "épée 1.wav" and clip.esc10


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "lacks the columns filename, fold"),
        ("filename,fold,target,category,src_file\n", "lacks the columns esc10, take; it should have filename, fold"),
        (HEADER, "lists no clips"),
        (HEADER + "a.wav,one,0,dog,True,a,A\n", "line 2: fold and target should be whole numbers, not 'one' and '0'"),
        (HEADER + "a.wav,1.0,0,dog,True,a,A\n", "line 2: fold and target should be whole numbers"),
        (HEADER + "a.wav,1,,dog,True,a,A\n", "line 2: fold and target should be whole numbers"),
        (HEADER + "a.wav,1,0,dog,True,a,A\nb.wav,6,0,dog,True,b,A\n", "line 3: fold 6 is not one of 1 to 5"),
        (HEADER + "a.wav,0,0,dog,True,a,A\n", "line 2: fold 0 is not"),
        (HEADER + "a.wav,1,0,dog\n", "line 2 has fewer cells than the header"),
        (HEADER + "a.wav,1,0,dog,True,a,A\na.wav,2,0,dog,True,a,A\n", "a.wav is listed twice"),
        (HEADER + "a.wav,1,0,dog,True,a,A\nb.wav,1,0,cat,True,b,A\n", "target 0 is named both 'dog' and 'cat'"),
        (HEADER + "a.wav,1,0,dog,True,a,A\nb.wav,1,1,dog,True,b,A\n", "'dog' has the targets 0 and 1"),
    ],
)
@pytest.mark.parametrize("subset", [None, "esc10"])
def test_a_malformed_table_is_refused(tmp_path, text, match, subset):
    write_table(tmp_path, text)
    with refused(match):
        read_table(tmp_path, subset=subset)


def test_a_table_that_is_missing_or_not_text_is_refused(tmp_path):
    with refused("no metadata table at .*; data.root should hold meta/esc50.csv"):
        read_table(tmp_path)
    write_table(tmp_path, HEADER + "épée.wav,1,0,dog,True,a,A\n", encoding="latin-1")
    with refused("is not a csv file in UTF-8"):
        read_table(tmp_path)


def test_a_subset_without_clips_is_refused(tmp_path):
    write_table(tmp_path, HEADER + "a.wav,1,0,dog,False,a,A\n")
    with refused("lists no clips of the subset esc10"):
        read_table(tmp_path, subset="esc10")


def test_class_names_go_with_their_targets_however_they_sort(tmp_path):
    clips = listing(folder(tmp_path, *(f"{name}/{name}_{i}.wav" for name in ("2", "10", "0", "1") for i in range(5))))
    assert class_names(clips) == ("0", "1", "10", "2")
    for clip in clips:
        assert clip.category == clip.path.parent.name == class_names(clips)[clip.target]


def test_one_file_name_in_two_classes_is_two_clips(tmp_path):
    clips = listing(folder(tmp_path, *(f"{name}/{i}.wav" for name in ("cat", "dog") for i in range(5))))
    assert len({clip.filename for clip in clips}) == len(clips) == 10
    assert {clip.filename: clip.category for clip in clips}["dog/3.wav"] == "dog"
    by_fold = Counter((clip.fold, clip.category) for clip in clips)
    assert set(by_fold.values()) == {1} and len(by_fold) == 10


def test_upper_case_suffixes_every_format_and_deep_folders_are_found(tmp_path):
    names = ("dog/A.WAV", "dog/b.Wav", "dog/c.wav", "dog/old/1999/d.FLAC", "dog/e.Mp3", "dog/f.OGG", "dog/g.aiff")
    assert sorted(clip.filename for clip in listing(folder(tmp_path, *names))) == sorted(names)


def test_hidden_and_foreign_files_are_ignored_and_counted(tmp_path, caplog):
    wanted = tuple(f"dog/{i}.wav" for i in range(5))
    ignored = (
        "dog/._0.wav",
        "dog/.cache/1.wav",
        "dog/__MACOSX/._2.wav",
        "__MACOSX/dog/._0.wav",
        ".git/x.wav",
        "dog/notes.txt",
        "dog/.DS_Store",
        "loose.wav",
        "empty class/readme.md",
    )
    with caplog.at_level(logging.INFO):
        clips = listing(folder(tmp_path, *wanted, *ignored))
    assert sorted(clip.filename for clip in clips) == sorted(wanted)
    assert class_names(clips) == ("dog",)
    assert f"5 clips of 1 classes under {tmp_path}; {len(ignored)} other or hidden files ignored" in caplog.messages


def test_odd_names_are_just_names(tmp_path):
    names = ("a b;c", "$(touch x)", "épée 犬", "epoch=3-step=4", "[1]{2}")
    clips = listing(folder(tmp_path, *(f"{name}/{name}.wav" for name in names)))
    assert {(clip.category, clip.source, clip.path.name) for clip in clips} == {(name, name, f"{name}.wav") for name in names}


def test_the_pattern_names_source_and_take(tmp_path):
    clips = listing(folder(tmp_path, "dog/rec1-A.wav", "dog/rec1-B.wav", *(f"dog/rec{i}.wav" for i in range(2, 6))))
    assert [(clip.source, clip.take) for clip in clips[:3]] == [("rec1", "A"), ("rec1", "B"), ("rec2", "A")]
    assert clips[0].fold == clips[1].fold


def test_a_name_outside_the_pattern_is_a_source_of_its_own(tmp_path):
    clips = listing(folder(tmp_path, *(f"dog/bark {i}.wav" for i in range(5))), source_pattern=r"(?P<source>\d+)-.*")
    assert [clip.source for clip in clips] == [f"bark {i}" for i in range(5)]


@pytest.mark.parametrize("names", [(), ("a.wav",), ("dog/a.txt",), ("dog/._a.wav",), ("__MACOSX/dog/a.wav",)], ids=str)
def test_a_folder_without_clips_is_refused(tmp_path, names):
    with refused("no audio found under .*: wanted one folder a class"):
        listing(folder(tmp_path, *names))


def test_audio_that_cannot_be_decoded_is_refused_before_any_work(tmp_path):
    root = folder(tmp_path, *(f"dog/{i}.wav" for i in range(5)), "dog/memo.M4A", "dog/old/b.wma", "dog/._c.m4a")
    with refused(r"2 files are in a format that libsndfile cannot read, the first is .*memo.M4A; convert them to WAV"):
        listing(root)


def test_a_folder_or_pattern_that_cannot_be_is_refused(tmp_path):
    with refused("no folder at .*; data.root should hold one folder a class"):
        listing(tmp_path / "absent")
    with refused("data.source_pattern .* is not a regular expression"):
        listing(tmp_path, source_pattern="(")


def test_class_names_insist_on_contiguous_targets():
    clip = Clip(filename="a.wav", path=Path("a.wav"), target=3, category="dog", fold=1, source="a")
    with pytest.raises(AssertionError, match="not contiguous"):
        class_names([clip])
