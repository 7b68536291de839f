"""What does augmentation cost? One image at a time on the CPU, as in the book, against whole batches."""

import numpy as np
import torch
from PIL import Image

from esc50.augment.draws import Draws
from esc50.augment.spectrogram import FrequencyMask, PixelNoise, TimeMask
from esc50.benchmarks.timing import Measurement, medians, take_turns

BATCH, N_MELS, FRAMES = 64, 128, 501
FIGURE = (240, 320)  # pixels of the book's picture of a clip
MAX_BANDS, MAX_FRAMES = 16, 50


def measure_augmentation(*, rounds: int) -> Measurement:
    """Seconds for 64 clips, until they are an augmented float32 batch.

    The book: its 320 x 240 colour figures, `BadRandom` noise on the PIL image, ToTensor, one frequency and one time mask,
    image by image. Ours: the same three on the batch, from the grey levels `128 x 501` that the store holds.
    """
    from torchvision.transforms.functional import to_tensor

    from esc50.benchmarks import book

    levels = np.random.default_rng(0).integers(0, 256, (BATCH, N_MELS, FRAMES), dtype=np.uint8)
    figures = np.random.default_rng(1).integers(0, 256, (BATCH, *FIGURE, 3), dtype=np.uint8)
    images = [Image.fromarray(figure) for figure in figures]
    batch = torch.from_numpy(levels)
    noise = book.BadRandom()
    ours = [PixelNoise(level=1 / 255).train(), FrequencyMask(max_width=MAX_BANDS).train(), TimeMask(max_width=MAX_FRAMES).train()]

    def per_image() -> torch.Tensor:
        done = []
        for image in images:
            tensor = to_tensor(noise(image))
            done.append(book.mask_time(book.mask_frequency(tensor, max_width=MAX_BANDS), max_width=MAX_FRAMES))
        return torch.stack(done)

    def whole_batch() -> torch.Tensor:
        draws = Draws(seed=0, epoch=0, batch=0)
        x = batch.unsqueeze(1).float().mul_(1 / 255)
        for module in ours:
            x = module(x, draws)
        return x

    seconds = take_turns({"book, image by image": per_image, "ours, whole batch": whole_batch}, rounds=rounds)
    middle = medians(seconds)
    return Measurement(
        title="Augmentation",
        rows=tuple((name, 1000 * value, "ms/batch of 64") for name, value in middle.items()),
        ratios={"augment_batch_vs_per_image": middle["book, image by image"] / middle["ours, whole batch"]},
        goals={"augment_batch_vs_per_image": 10},
        raw=seconds,
        note="the book's noise goes through float64 arrays and PIL; ours is bound by memory",
    )
