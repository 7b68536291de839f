"""Seconds are counted where they are spent."""

import time
from types import SimpleNamespace

import pytest
import torch

from esc50.watch.timing import Timing, summarise

CLIPS = {"target": torch.zeros(8, dtype=torch.long)}


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes only when it is told to."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    return clock


def one_epoch(panel, clock, trainer, task, *, before=1.0, data=2.0, model=6.0) -> None:
    panel.on_train_epoch_start(trainer, task)
    clock.now += before
    for batch_idx in range(3):
        if batch_idx:
            clock.now += data
        panel.on_train_batch_start(trainer, task, CLIPS, batch_idx)
        clock.now += model
        panel.on_train_batch_end(trainer, task, None, CLIPS, batch_idx)
        trainer.global_step += 1
    clock.now += 50  # of validation
    panel.on_train_epoch_end(trainer, task)


def test_means_and_shares():
    assert summarise(data_seconds=2.0, model_seconds=6.0, num_batches=4, num_examples=64) == {
        "time/data_seconds": 0.5,
        "time/model_seconds": 1.5,
        "time/wait_share": 0.25,
        "time/examples_a_second": 8.0,
    }


def test_data_comes_between_batches_and_before_the_first_and_validation_is_neither(clock, trainer):
    panel, task = Timing(), SimpleNamespace(body_frozen=False, reuses_embeddings=True)
    one_epoch(panel, clock, trainer, task)
    one_epoch(panel, clock, trainer, task, before=4.0)
    first = {"time/data_seconds": 5 / 3, "time/model_seconds": 6.0, "time/wait_share": 5 / 23, "time/examples_a_second": 24 / 23}
    second = {"time/data_seconds": 8 / 3, "time/model_seconds": 6.0, "time/wait_share": 8 / 26, "time/examples_a_second": 24 / 26}
    assert trainer.scalars == {2: pytest.approx(first), 5: pytest.approx(second)}


def test_computing_embeddings_is_no_waiting_for_data(clock, trainer):
    one_epoch(Timing(), clock, trainer, SimpleNamespace(body_frozen=True, reuses_embeddings=True), before=1000.0)
    assert trainer.scalars[2]["time/data_seconds"] == pytest.approx(4 / 3)


def test_all_processes_learn_from_examples(clock, trainer):
    trainer.world_size = 4
    one_epoch(Timing(), clock, trainer, SimpleNamespace(body_frozen=False, reuses_embeddings=True))
    assert trainer.scalars[2]["time/examples_a_second"] == pytest.approx(4 * 24 / 23)
