"""How fast are features precomputed? The book's figures against grey PNGs, and both against the arithmetic alone."""

import multiprocessing
import os
import resource
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from esc50.benchmarks.timing import Measurement, medians, take_turns
from esc50.data.clip import Clip
from esc50.features.logmel import mel_power
from esc50.features.recipe import Recipe
from esc50.features.store import build_store

PEAK_MEMORY_GOAL_MB = 600


def measure_precompute(clips: Sequence[Clip], recipe: Recipe, *, rounds: int) -> Measurement:
    """Clips a second of the book's way, of ours on one core and on all cores, and of the floor (decode, FFT, mel product).

    `recipe` has the book's parameters. Everything runs with one thread a worker, on the same clips.
    """
    from esc50.benchmarks.book import FigureWriter

    cores = os.cpu_count()
    with tempfile.TemporaryDirectory() as temporary, threadpool_limits(1):
        folder = Path(temporary)
        figures = FigureWriter()

        def book() -> None:
            for clip in clips:
                figures(clip.path, folder / "figure.png")

        def ours(num_workers: int | None) -> None:
            # A new root every time: a store that is up to date would be left alone.
            with tempfile.TemporaryDirectory(dir=folder) as root:
                build_store(clips, root=root, recipe=recipe, num_workers=num_workers, progress=False)

        def floor() -> None:
            for clip in clips:
                mel_power(recipe.read(clip.path), recipe.log_mel)

        seconds = take_turns(
            {"book": book, "ours, one core": lambda: ours(1), "ours, all cores": lambda: ours(cores), "floor, one core": floor},
            rounds=rounds,
        )
    middle = medians(seconds)
    peak = peak_memory_mb(clips, recipe)
    return Measurement(
        title="Precompute",
        rows=(
            *((name, len(clips) / value, "clips/s") for name, value in middle.items()),
            ("peak memory of the stage", peak, "MB"),
        ),
        ratios={
            "precompute_one_core_vs_book": middle["book"] / middle["ours, one core"],
            "precompute_all_cores_vs_book": middle["book"] / middle["ours, all cores"],
            "precompute_vs_floor_time": middle["ours, one core"] / middle["floor, one core"],
            "precompute_memory_vs_goal_time": peak / PEAK_MEMORY_GOAL_MB,
        },
        goals={
            "precompute_one_core_vs_book": 10,
            "precompute_all_cores_vs_book": 18,
            "precompute_vs_floor_time": 1.5,
            "precompute_memory_vs_goal_time": 1.0,
        },
        raw=seconds,
        note=f"{len(clips)} clips a round; the FFT takes most of our time, drawing the figure most of the book's",
    )


def peak_memory_mb(clips: Sequence[Clip], recipe: Recipe) -> float:
    """Largest resident memory of a fresh process that builds the store, in MB."""
    context = multiprocessing.get_context("spawn")
    pool = context.Pool(1)
    try:
        return pool.apply(_peak, (list(clips), recipe))
    finally:
        pool.close()  # left by itself, not killed: it gives its semaphores back
        pool.join()


def _peak(clips: list[Clip], recipe: Recipe) -> float:
    with tempfile.TemporaryDirectory() as root:
        packed, _ = build_store(clips, root=root, recipe=recipe, progress=False)
        assert np.shape(packed)[0] == len(clips)
    status = Path("/proc/self/status")
    if status.is_file():  # what getrusage says counts the parent's memory too, from before the new program took its place
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
