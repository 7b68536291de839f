"""Do time and memory grow in straight lines with the number of clips?"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from esc50.benchmarks.precompute import peak_memory_mb
from esc50.benchmarks.timing import Measurement
from esc50.data.clip import Clip
from esc50.features.recipe import Recipe
from esc50.features.store import build_store

SIZES = (250, 500, 1000, 2000)


def repeated(clips: Sequence[Clip], size: int) -> list[Clip]:
    """So many clips out of these, each under a name of its own; the files are read again for each."""
    return [replace(clips[i % len(clips)], filename=f"{i}-{clips[i % len(clips)].filename}") for i in range(size)]


def measure_growth(clips: Sequence[Clip], recipe: Recipe, *, epoch_seconds: Callable[[list[Clip]], float]) -> Measurement:
    """Seconds and memory of precomputing, and seconds of a training epoch, at growing numbers of clips.

    `epoch_seconds(clips)` trains one warm epoch on these clips.
    """
    precompute, memory, epoch = [], [], []
    for size in SIZES:
        some = repeated(clips, size)
        with tempfile.TemporaryDirectory() as root:
            started = time.perf_counter()
            build_store(some, root=root, recipe=recipe, progress=False)
            precompute.append(time.perf_counter() - started)
        memory.append(peak_memory_mb(some, recipe))
        epoch.append(epoch_seconds(some))
    rows = []
    for size, *values in zip(SIZES, precompute, memory, epoch, strict=True):
        rows += [
            (f"{size} clips: {what}", value, unit)
            for what, value, unit in zip(("precompute", "peak memory", "epoch"), values, ("s", "MB", "s"), strict=True)
        ]
    slopes = {name: _line(values) for name, values in (("precompute", precompute), ("memory", memory), ("epoch", epoch))}
    rows += [
        ("slope: precompute", 1000 * slopes["precompute"][0], "ms/clip"),
        ("slope: peak memory", 1000 * slopes["memory"][0], "kB/clip"),
        ("slope: epoch", 1000 * slopes["epoch"][0], "ms/clip"),
    ]
    return Measurement(
        title=f"Growth, {os.cpu_count()} cores",
        rows=tuple(rows),
        ratios={f"growth_{name}_r2": fit for name, (_, fit) in slopes.items() if name != "memory"},
        goals={"growth_precompute_r2": 0.98, "growth_epoch_r2": 0.98},
        raw={"precompute": precompute, "memory": memory, "epoch": epoch},
        note="memory grows by the pages of the packed array that the system keeps mapped, if at all",
    )


def _line(values: Sequence[float]) -> tuple[float, float]:
    """Slope of the straight line through the values over SIZES, and the share of their variance that it explains."""
    slope, start = np.polyfit(SIZES, values, 1)
    rest = np.asarray(values) - (slope * np.asarray(SIZES) + start)
    return float(slope), float(1 - rest.var() / max(np.var(values), 1e-12))
