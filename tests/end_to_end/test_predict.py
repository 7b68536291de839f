"""scripts/predict.py says what each recording is: for people, or in rows and nothing else."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ("top=2", "min_probability=0")


@pytest.fixture
def place(sounds, tmp_path):
    """A folder `in` with a short and a long recording and one that is broken."""
    (tmp_path / "in").mkdir()
    short, long = (soundfile.read(sounds / "hum" / name)[0] for name in ("hum0-A.wav", "hum1-A.wav"))
    soundfile.write(tmp_path / "in" / "a, short.wav", short, 8000)
    soundfile.write(tmp_path / "in" / "long.WAV", np.tile(long, 3), 8000)
    (tmp_path / "in" / "broken.wav").write_bytes(b"RIFF")
    return tmp_path


def check_rows(rows: list[dict]) -> None:
    short, long = rows
    assert [short["file"], long["file"]] == ["in/a, short.wav", "in/long.WAV"]
    for row in rows:
        assert row["label"] == row["top"][0]["label"] and row["probability"] == row["top"][0]["probability"]
        assert len(row["top"]) == 2 and row["top"][0]["probability"] >= row["top"][1]["probability"]
    assert not short.get("windows") and [one["start"] for one in long["windows"]] == [0, 0.5, 1]


def test_json_lines_are_nothing_but_rows_and_a_bad_file_is_a_line_on_stderr(trained, place, command):
    ended = command("scripts/predict.py", f"checkpoint={trained}", "input=in", "format=jsonl", *SETTINGS, cwd=place)
    check_rows([json.loads(line) for line in ended.out.splitlines()])
    error, worth = ended.err.splitlines()
    assert ended.status == 1 and error.startswith("error: in/broken.wav: not readable as audio")
    assert worth.startswith("The model got ") and worth.endswith("calibrated on validation clips.")
    assert {path.name for path in place.iterdir()} == {"in"}


def test_csv_is_one_table(trained, place, command):
    ended = command("scripts/predict.py", f"checkpoint={trained}", "input=in", "format=csv", *SETTINGS, cwd=place)
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert list(rows[0]) == ["file", "label", "probability", "top", "windows"]
    check_rows([row | {key: json.loads(row[key] or "null") for key in ("probability", "top", "windows")} for row in rows])
    assert ended.status == 1


def test_a_table_has_the_classes_the_time_line_and_what_the_model_is_worth(trained, place, command):
    ended = command("scripts/predict.py", f"checkpoint={trained}", "input='in/long.WAV'", "min_probability=0", cwd=place)
    lines = ended.out.splitlines()
    assert ended.status == 0 and lines[0].startswith("in/long.WAV  0:01.5  ")
    label = lines[0].split()[-1]
    assert lines[1].split()[0] == label and "%" in lines[1] and "█" in lines[1]
    assert lines[-2] == f"  0:00.0 - 0:01.5  {label} ({lines[1].split()[1]})"
    assert lines[-1].startswith("The model got ") and "6 test clips right (fold 5, split=holdout)" in lines[-1]


def test_a_recording_may_come_on_stdin_and_an_unsure_answer_is_unknown(trained, place, command, monkeypatch):
    for content, status in (((place / "in" / "a, short.wav").read_bytes(), 0), (b"nothing to hear", 1)):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        ended = command("scripts/predict.py", f"checkpoint={trained}", "input=-", "format=jsonl", "min_probability=1", cwd=place)
        assert ended.status == status
        if status:
            assert ended.out == "" and ended.err.startswith("error: -: not readable as audio")
        else:
            row = json.loads(ended.out)
            assert (row["file"], row["label"]) == ("-", "unknown") and row["top"][0]["label"] != "unknown"


@pytest.mark.slow
def test_whoever_reads_may_stop_reading(trained, sounds):
    program = f"{sys.executable} {ROOT / 'scripts' / 'predict.py'} checkpoint={trained} input={sounds} format=jsonl | head -n 1"
    ended = subprocess.run(["bash", "-o", "pipefail", "-c", program], capture_output=True, text=True)
    assert ended.returncode in (0, 141) and len(ended.stdout.splitlines()) == 1 and "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("format=xml", "format=xml: wanted one of table, csv, jsonl"),
        ("top=0", "top=0: wanted a whole number of 1 or more"),
        ("min_probability=2", "min_probability=2: wanted a number from 0 to 1 or null"),
        ("window=9", "window=9: the model was trained on 0.5 seconds"),
        ("input=nowhere", "input=nowhere: no such file or folder"),
        ("checkpoint=in", "in holds no checkpoints/last.ckpt"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(setting, message, trained, place, command):
    given = {"checkpoint": f"checkpoint={trained}", "input": "input=in"} | {setting.partition("=")[0]: setting}
    ended = command("scripts/predict.py", *given.values(), cwd=place)
    assert ended.status == 2 and ended.err.startswith(f"error: {message}") and len(ended.err.splitlines()) == 1
    assert ended.out == ""
