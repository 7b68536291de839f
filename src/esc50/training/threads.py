"""How many threads compute, so that neither data workers nor other processes fight over the cores."""

import os


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def divide_cores(num_jobs: int) -> None:
    """Before torch is imported: let each of `num_jobs` trainings at once compute with its part of the cores."""
    if num_jobs > 1:
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, num_cores() // num_jobs)))


def share_cores(*, num_workers: int, num_processes: int = 1) -> int:
    """Let torch compute with the cores that loader workers and other training processes leave; OMP_NUM_THREADS, where it
    is set, has the last word. Returns the number of threads."""
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, num_cores() // num_processes - num_workers))
    return torch.get_num_threads()
