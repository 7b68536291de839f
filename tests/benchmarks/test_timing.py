"""The measuring itself: turns, medians, goals, the straight line and the report."""

import json

import pytest

from esc50.benchmarks.growth import SIZES, _line, repeated
from esc50.benchmarks.report import write_report
from esc50.benchmarks.timing import Measurement, medians, take_turns
from esc50.data.clip import Clip


def test_contestants_take_turns_after_a_round_that_does_not_count():
    calls = []
    seconds = take_turns({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3)
    assert "".join(calls) == "ab" + "ab" + "ba" + "ab"
    assert {name: len(values) for name, values in seconds.items()} == {"a": 3, "b": 3}


def test_medians_are_not_moved_by_one_slow_round():
    assert medians({"a": [1.0, 1.2, 50.0]}) == {"a": 1.2}


def test_ratios_should_be_above_their_goal_and_times_below():
    one = Measurement(title="x", rows=(), note="", ratios={"fast": 3.0, "start_time": 0.5}, goals={"fast": 2, "start_time": 1})
    assert one.reached("fast") and one.reached("start_time")
    other = Measurement(title="x", rows=(), note="", ratios={"fast": 1.0, "start_time": 1.5}, goals={"fast": 2, "start_time": 1})
    assert not other.reached("fast") and not other.reached("start_time")


def test_a_straight_line_is_explained_whole_and_a_bend_is_not():
    slope, fit = _line([0.5 + 0.01 * size for size in SIZES])
    assert slope == pytest.approx(0.01) and fit == pytest.approx(1.0)
    assert _line([size**3 for size in SIZES])[1] < 0.95


def test_repeated_clips_have_names_of_their_own(tmp_path):
    clips = [
        Clip(filename=f"{i}.wav", path=tmp_path / f"{i}.wav", target=0, category="a", fold=1, source=str(i)) for i in range(3)
    ]
    many = repeated(clips, 8)
    assert len({clip.filename for clip in many}) == 8
    assert [clip.path for clip in many[:4]] == [clips[i].path for i in (0, 1, 2, 0)]


def test_the_report_holds_every_ratio_goal_and_raw_figure(tmp_path):
    one = Measurement(
        title="Precompute",
        rows=(("ours", 12.0, "clips/s"),),
        note="the FFT",
        ratios={"ours_vs_book": 11.0},
        goals={"ours_vs_book": 10},
        raw={"ours": [1.0, 2.0]},
    )
    text = write_report([one], tmp_path, command="python scripts/benchmark.py")
    saved = json.loads((tmp_path / "benchmark.json").read_text())
    assert saved["ratios"] == {"ours_vs_book": 11.0} and saved["goals"] == {"ours_vs_book": 10}
    assert saved["measurements"][0]["raw"] == {"ours": [1.0, 2.0]}
    assert {"processor", "cores"} <= saved["hardware"].keys() and "torch" in saved["versions"]
    assert "| `ours_vs_book` | 11 | at least 10 | reached |" in text and text == (tmp_path / "benchmark.md").read_text()
