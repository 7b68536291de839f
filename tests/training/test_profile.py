"""The parts of a training add up to the whole, and the trace shows what ran."""

import csv
import json
import time

import pytest

from esc50.runs import train as run
from esc50.training.profile import PARTS, PartsProfiler

STEP = "[Strategy]SingleDeviceStrategy.training_step"


def test_an_action_within_another_stops_its_clock(tmp_path):
    parts = PartsProfiler(tmp_path / "parts.csv")
    started = time.perf_counter()
    with parts.profile("[LightningModule]Classifier.optimizer_step"):
        with parts.profile(STEP):
            time.sleep(0.02)
            with parts.profile("augmentation"):
                time.sleep(0.05)
        with parts.profile("[Strategy]SingleDeviceStrategy.backward"):
            time.sleep(0.03)
    with parts.profile("[_TrainingEpochLoop].train_dataloader_next"):
        time.sleep(0.04)
    took = time.perf_counter() - started
    assert sum(parts.seconds.values()) == pytest.approx(took, abs=0.005)
    for part, seconds in (("augmentation", 0.05), ("forward", 0.02), ("backward", 0.03), ("data", 0.04)):
        assert seconds <= parts.seconds[part] < seconds + 0.015, part
    assert parts.seconds["optimizer"] < 0.01
    assert parts.num_steps == 1


def test_an_unknown_action_belongs_to_the_one_around_it(tmp_path):
    parts = PartsProfiler(tmp_path / "parts.csv")
    with parts.profile(STEP), parts.profile("something new"):
        time.sleep(0.01)
    assert parts.seconds["forward"] >= 0.01


@pytest.fixture(scope="module")
def traced(compose, tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("traced")
    run.train(
        compose(
            *tiny, "model=melcnn", "augment=specaugment", "trainer.max_epochs=2", "trainer.profile=trace", "loader.batch_size=4"
        ),
        folder,
    )
    return folder


def test_a_run_leaves_a_table_in_which_every_part_of_training_took_time(traced):
    with (traced / "parts.csv").open(encoding="utf-8") as file:
        rows = {row["part"]: row for row in csv.DictReader(file)}
    assert tuple(rows) == PARTS
    for part in set(PARTS) - {"transfer", "checkpoints"}:
        assert float(rows[part]["seconds"]) > 0, part
    assert sum(float(row["share"]) for row in rows.values()) == pytest.approx(1, abs=1e-3)


def test_the_trace_names_the_operations_of_the_network(traced):
    names = {event.get("name") for event in json.loads((traced / "trace.json").read_text(encoding="utf-8"))["traceEvents"]}
    assert any("conv2d" in str(name) for name in names)
