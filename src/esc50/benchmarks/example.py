"""How long does one example take until the model could have it? The book's three ways and ours."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from esc50.benchmarks.timing import Measurement, medians, take_turns
from esc50.data.clip import Clip
from esc50.features.front_end import FrontEnd
from esc50.features.recipe import Recipe
from esc50.features.rows import PackedRows
from esc50.features.store import build_store

BATCH = 64


def measure_example(clips: Sequence[Clip], recipe: Recipe, *, rounds: int) -> Measurement:
    """Seconds until a normalised float32 batch of 64 is ready, a clip; the book's PNGs are its 320 x 240 figures."""
    from esc50.benchmarks import book

    clips = list(clips)[:BATCH]
    front_end = FrontEnd(recipe, normalization="train")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        writer = book.FigureWriter()
        figures = [folder / f"{number}.png" for number in range(len(clips))]
        for clip, figure in zip(clips, figures, strict=True):
            writer(clip.path, figure)
        packed, rows = build_store(clips, root=folder, recipe=recipe, progress=False)
        stored = PackedRows(packed, rows, memory_limit=1e9)
        front_end.fit(stored, range(len(clips)))
        order = torch.randperm(len(clips)).tolist()
        seconds = take_turns(
            {
                "book, raw audio": lambda: torch.stack([book.raw_audio(clip.path) for clip in clips]),
                "book, on the fly": lambda: torch.stack([book.on_the_fly(clip.path) for clip in clips]),
                "book, PNG": lambda: torch.stack([book.from_png(figure) for figure in figures]),
                "ours": lambda: front_end(torch.from_numpy(stored.take(order))),
            },
            rounds=rounds,
        )
    middle = medians(seconds)
    return Measurement(
        title="One example",
        rows=tuple((name, 1000 * value / len(clips), "ms/clip") for name, value in middle.items()),
        ratios={"example_vs_png": middle["book, PNG"] / middle["ours"]},
        goals={"example_vs_png": 50},
        raw=seconds,
        note="ours is bound by memory: four bytes written for each grey level read",
    )
