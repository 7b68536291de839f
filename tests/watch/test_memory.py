"""Memory in use is what the system says it is."""

import mmap

import psutil
import pytest
import torch

from esc50.watch.memory import memory_in_use


def test_on_a_cpu_it_is_the_memory_of_the_process():
    before = memory_in_use(torch.device("cpu"))["memory/process_mb"]
    assert before == pytest.approx(psutil.Process().memory_info().rss / 1e6, rel=0.05)
    with mmap.mmap(-1, 200_000_000) as held:  # not from what the C library keeps
        held.write(bytes(range(1, 251)) * 800_000)
        assert memory_in_use(torch.device("cpu"))["memory/process_mb"] > before + 150
