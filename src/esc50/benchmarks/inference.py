"""How many clips a second does a trained model label?"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from esc50.benchmarks.timing import Measurement, medians, take_turns
from esc50.data.clip import Clip
from esc50.training.task import Classifier

BATCH = 32


def measure_inference(tasks: Mapping[str, Callable[[], Classifier]], clips: Sequence[Clip], *, rounds: int) -> Measurement:
    """From audio file to probabilities, in float32: one clip at a time, and in batches of 32."""
    paths = [clip.path for clip in list(clips)[:BATCH]]
    rows: list[tuple[str, float, str]] = []
    raw: dict[str, list[float]] = {}
    for name, make in tasks.items():
        task = make().eval()
        seconds = take_turns(
            {
                f"{name}, one at a time": partial(_label_each, task, paths),
                f"{name}, batched": partial(_label, task, paths),
            },
            rounds=rounds,
        )
        raw |= seconds
        rows += [(what, len(paths) / value, "clips/s") for what, value in medians(seconds).items()]
    return Measurement(
        title="Inference, audio file to probabilities",
        rows=tuple(rows),
        raw=raw,
        note="the network, except for melcnn, where reading and the spectrogram weigh too",
    )


@torch.inference_mode()
def _label(task: Classifier, paths: Sequence[Path]) -> torch.Tensor:
    """Probabilities `[batch, classes]`."""
    stored = torch.from_numpy(np.stack([task.front_end.recipe.compute(path) for path in paths]))
    return task(stored)["logits"].softmax(dim=1)


def _label_each(task: Classifier, paths: Sequence[Path]) -> list[torch.Tensor]:
    return [_label(task, [path]) for path in paths]
