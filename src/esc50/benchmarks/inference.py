"""How many clips a second does a trained model label?"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from esc50.benchmarks.timing import Measurement, medians, take_turns
from esc50.data.clip import Clip
from esc50.training.task import Classifier

BATCH = 32


def measure_inference(tasks: Mapping[str, Callable[[], Classifier]], clips: Sequence[Clip], *, rounds: int) -> Measurement:
    """From audio file to probabilities, in float32: one clip at a time, and in batches of 32."""
    paths = [clip.path for clip in list(clips)[:BATCH]]
    rows, raw = [], {}
    for name, make in tasks.items():
        task = make().eval()
        recipe = task.front_end.recipe

        def label(paths: Sequence, task: Classifier = task, recipe=recipe) -> torch.Tensor:
            with torch.inference_mode():
                stored = torch.from_numpy(np.stack([recipe.compute(path) for path in paths]))
                return task(stored)["logits"].softmax(dim=1)

        seconds = take_turns(
            {
                f"{name}, one at a time": lambda label=label: [label([path]) for path in paths],
                f"{name}, batched": lambda label=label: label(paths),
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
