"""Workers, processes and torch's own threads together never want more cores than there are."""

import pytest
import torch

from esc50.training import threads


@pytest.fixture(autouse=True)
def kept(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("cores", "workers", "processes", "wanted"),
    [(2, 0, 1, 2), (2, 1, 1, 1), (2, 4, 1, 1), (8, 3, 1, 5), (8, 1, 2, 3), (2, 0, 2, 1), (1, 0, 1, 1)],
)
def test_torch_takes_what_workers_and_processes_leave(cores, workers, processes, wanted, monkeypatch):
    monkeypatch.setattr(threads, "num_cores", lambda: cores)
    assert threads.share_cores(num_workers=workers, num_processes=processes) == wanted
    assert torch.get_num_threads() == wanted


def test_the_environment_has_the_last_word(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before = torch.get_num_threads()
    monkeypatch.setattr(threads, "num_cores", lambda: before + 5)
    assert threads.share_cores(num_workers=0) == before
