"""Folds and roles: no recording in two folds, no fold in two roles."""

import csv
import logging
import random
from collections import Counter, defaultdict
from contextlib import contextmanager
from pathlib import Path

import pytest

from esc50.data.clip import Clip
from esc50.data.folders import read_folder
from esc50.data.folds import PROTOCOLS, Split, assign_folds, leaking_sources, make_split, read_folds, with_fewer, write_split
from esc50.data.tables import read_table
from esc50.errors import DataError


def clips_of(*sources: tuple[str, str, int], root: str = "/data") -> list[Clip]:
    """Clips of (category, source, number of takes), all in fold 1."""
    targets = {category: i for i, category in enumerate(sorted({category for category, _, _ in sources}))}
    return [
        Clip(
            filename=f"{category}/{source}-{take}.wav",
            path=Path(root, category, f"{source}-{take}.wav"),
            fold=1,
            target=targets[category],
            category=category,
            source=source,
            take=str(take),
        )
        for category, source, num_takes in sources
        for take in range(num_takes)
    ]


def in_folds(*folds: int) -> list[Clip]:
    return [
        Clip(filename=f"{i}.wav", path=Path(f"{i}.wav"), target=0, category="dog", fold=fold, source=str(i))
        for i, fold in enumerate(folds)
    ]


def spread(clips: list[Clip], folds: list[int]) -> dict[str, Counter[int]]:
    """Clips per fold of each class."""
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for clip, fold in zip(clips, folds, strict=True):
        counts[clip.category][fold] += 1
    return counts


@contextmanager
def refused(match: str):
    with pytest.raises(DataError, match=match) as caught:
        yield
    assert "\n" not in str(caught.value)


# fold: (validates, trains) of the protocol holdout
HOLDOUT = {1: (5, {2, 3, 4}), 2: (1, {3, 4, 5}), 3: (2, {1, 4, 5}), 4: (3, {1, 2, 5}), 5: (4, {1, 2, 3})}


@pytest.mark.parametrize("fold", HOLDOUT)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_roles_are_whole_folds_and_every_clip_has_one(protocol, fold):
    clips = in_folds(*(1, 2, 3, 4, 5) * 3)
    split = make_split(clips, protocol=protocol, fold=fold)
    roles = {role: {clip.fold for clip in members} for role, members in split.roles().items()}
    validates, trains = HOLDOUT[fold]
    assert (
        roles
        == {
            "holdout": {"train": trains, "val": {validates}, "test": {fold}},
            "official": {"train": trains | {validates}, "val": set(), "test": {fold}},
            "all": {"train": {1, 2, 3, 4, 5}, "val": set(), "test": set()},
        }[protocol]
    )
    assert sorted(clip.filename for members in split.roles().values() for clip in members) == sorted(
        clip.filename for clip in clips
    )


@pytest.mark.parametrize(
    ("folds", "protocol", "fold", "match"),
    [
        ((1, 2, 3, 5), "holdout", 5, r"no clips for val with fold=5 split=holdout: .*\[1, 2, 3, 5\]; choose another"),
        ((1, 2, 3, 4), "holdout", 5, "no clips for test"),
        ((4, 5), "holdout", 5, "no clips for train"),
        ((1, 1), "holdout", 4, "no clips for val and test"),
        ((3, 3), "official", 3, "no clips for train"),
        ((3, 3), "official", 1, "no clips for test"),
    ],
)
def test_a_role_without_clips_is_refused(folds, protocol, fold, match):
    with refused(match):
        make_split(in_folds(*folds), protocol=protocol, fold=fold)


def test_all_asks_for_no_fold_in_particular():
    assert len(make_split(in_folds(3, 3), protocol="all", fold=1).train) == 2


def test_exactly_four_recordings_of_esc50_leak(shared):
    leaks = leaking_sources(read_table(shared / "esc50_meta"))
    assert set(leaks) == {"131943", "134049", "209698", "234879"}
    assert all(len(folds) == 2 for folds in leaks.values())


def test_takes_of_one_source_share_a_fold_and_the_log_says_so(caplog):
    clips = clips_of(*((category, f"{category}-rec{i}", 1 + i % 4) for category in "ab" for i in range(9)))
    with caplog.at_level(logging.INFO):
        folds = assign_folds(clips, seed=0)
    fold_of = defaultdict(set)
    for clip, fold in zip(clips, folds, strict=True):
        fold_of[clip.source].add(fold)
    assert all(len(of) == 1 for of in fold_of.values())
    assert caplog.messages == [
        f"folds by source: 18 sources, no source in two folds, clips per fold {[Counter(folds)[fold] for fold in range(1, 6)]}"
    ]


def test_single_takes_are_spread_as_esc50_spreads_them():
    clips = clips_of(*((f"class {c}", f"{c}-{i}", 1) for c in range(10) for i in range(40)))
    assert all(of == dict.fromkeys(range(1, 6), 8) for of in spread(clips, assign_folds(clips, seed=3)).values())


@pytest.mark.parametrize("seed", range(4))
def test_large_sources_do_not_make_large_folds(seed):
    clips = clips_of(*(("dog", f"long {i}", 8) for i in range(4)), *(("dog", f"short {i}", 1) for i in range(18)))
    assert spread(clips, assign_folds(clips, seed=seed))["dog"] == dict.fromkeys(range(1, 6), 10)


def test_folds_depend_on_names_and_seed_alone():
    sources = [("ab"[i % 2], f"{i}", 1 + i % 3) for i in range(30)]
    here, there = clips_of(*sources), clips_of(*sources, root="/elsewhere/on disk")
    random.Random(0).shuffle(there)
    named = {clip.filename: fold for clip, fold in zip(there, assign_folds(there, seed=1), strict=True)}
    assert assign_folds(here, seed=1) == [named[clip.filename] for clip in here]
    assert assign_folds(here, seed=1) != assign_folds(here, seed=2)


@pytest.mark.parametrize("seed", range(20))
def test_a_class_of_five_sources_is_in_every_fold(seed, caplog):
    draw = random.Random(seed)
    clips = clips_of(
        *(
            (category, f"{category}{i}", draw.choice((1, 1, 2, 3, 50)))
            for category in "abcdefg"
            for i in range(draw.randint(5, 12))
        )
    )
    folds = assign_folds(clips, seed=seed)
    assert all(set(of) == {1, 2, 3, 4, 5} for of in spread(clips, folds).values())
    assert not caplog.records


def test_classes_too_small_for_every_fold_are_named(caplog):
    clips = clips_of(*(("big", f"b{i}", 1) for i in range(5)), *(("small", f"s{i}", 3) for i in range(4)))
    folds = assign_folds(clips, seed=0)
    assert len(spread(clips, folds)["small"]) == 4
    assert caplog.messages == ["some folds have none of these classes, which need 5 sources or more: small"]


def test_small_classes_together_fill_five_folds():
    clips = clips_of(*((category, f"{category}{i}", 1) for category in "abc" for i in range(4)))
    folds = assign_folds(clips, seed=0)
    assert sorted(Counter(folds).values()) == [2, 2, 2, 3, 3]
    assert all(max(of.values()) == 1 for of in spread(clips, folds).values())


def test_fewer_than_five_sources_cannot_make_five_folds():
    with refused("40 clips come from 4 sources; five folds need at least 5; .* change data.source_pattern, or give"):
        assign_folds(clips_of(*(("dog", f"{i}", 10) for i in range(4))), seed=0)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_csv_gives_the_folds_of_a_folder(tmp_path, mark):
    for name in ("a", "b", "c"):
        (tmp_path / "sounds" / "dog").mkdir(parents=True, exist_ok=True)
        (tmp_path / "sounds" / "dog" / f"{name}.wav").touch()
    table = tmp_path / "folds.csv"
    table.write_text(mark + "filename,fold,note\ndog/c.wav,1,\ndog/a.wav,5,\ndog/b.wav,1,\ndog/gone.wav,2,\n", encoding="utf-8")
    clips = read_folder(tmp_path / "sounds", source_pattern=".*", folds_csv=table)
    assert [(clip.filename, clip.fold) for clip in clips] == [("dog/a.wav", 5), ("dog/b.wav", 1), ("dog/c.wav", 1)]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (None, "data.folds_csv: no file at "),
        ("filename,role\n0.wav,1\n", "lacks the columns fold"),
        ("filename,fold\n1.wav,1\n", "gives no fold for 0.wav"),
        ("filename,fold\n0.wav,6\n", "the fold of 0.wav is '6', not one of 1 to 5"),
        ("filename,fold\n0.wav,first\n", "the fold of 0.wav is 'first'"),
        ("filename,fold\n0.wav\n", "line 2 has fewer cells"),
        ("filename,fold\n0.wav,1\n0.wav,2\n", "line 3 puts 0.wav into a second fold"),
    ],
)
def test_a_malformed_table_of_folds_is_refused(tmp_path, text, match):
    path = tmp_path / "folds.csv"
    if text is not None:
        path.write_text(text)
    with refused(match):
        read_folds(path, in_folds(1))


def test_the_written_split_names_every_clip_with_its_fold_and_role(tmp_path):
    write_split(make_split(in_folds(5, 4, 1), protocol="holdout", fold=5), tmp_path / "split.csv")
    with (tmp_path / "split.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [
            ["filename", "fold", "role"],
            ["2.wav", "1", "train"],
            ["1.wav", "4", "val"],
            ["0.wav", "5", "test"],
        ]


def test_fewer_clips_are_taken_from_each_class_in_turn():
    clips = clips_of(("cat", "a", 8), ("dog", "b", 3))
    split = Split(protocol="all", train=tuple(clips))
    assert Counter(one.target for one in with_fewer(split, 4).train) == {0: 2, 1: 2}
    assert Counter(one.target for one in with_fewer(split, 9).train) == {0: 6, 1: 3}
    assert with_fewer(split, 50) == split
