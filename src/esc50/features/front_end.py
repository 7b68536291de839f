"""From stored integers to what a model reads, on the model's device: decode, log-mel, normalise."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from esc50.features.device_logmel import LogMel
from esc50.features.recipe import Recipe
from esc50.features.rows import Rows

NORMALIZATIONS = ("imagenet", "train", "none")
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CHUNK = 32  # clips at a time when statistics are taken


class FrontEnd(nn.Module):
    """Three steps, so that augmentation can stand between them; all parameters travel in the state dict.

    `decode`: int16 `[batch, time]` to samples within -1..1, or uint8 `[batch, mel, frames]` to an image `[batch, 1, mel,
    frames]` within 0..1. `spectrogram`: samples to such an image where the recipe is `logmel`, else nothing. `normalize`:
    (x - mean) / std, to three channels for `imagenet`, where a network pre-trained on pictures expects them.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, recipe: Recipe, *, normalization: str):
        super().__init__()
        assert normalization in NORMALIZATIONS
        self.recipe, self.normalization = recipe, normalization
        self.log_mel = LogMel(recipe.log_mel) if recipe.kind == "logmel" else None
        mean, std = (IMAGENET_MEAN, IMAGENET_STD) if normalization == "imagenet" else ((0.0,), (1.0,))
        shape = (1, -1, 1, 1) if recipe.mel else (1, -1)
        self.register_buffer("mean", torch.tensor(mean).reshape(shape))
        self.register_buffer("std", torch.tensor(std).reshape(shape))

    @property
    def num_channels(self) -> int:
        """Channels of the image that the model gets; 1 for waveforms."""
        return self.mean.numel()

    def decode(self, stored: Tensor) -> Tensor:
        """Integers to float32: samples `[batch, time]` or images `[batch, 1, mel, frames]`."""
        if self.recipe.keeps_images:
            return stored.unsqueeze(1).float().mul_(1 / 255)
        return stored.float().mul_(1 / 32768)

    def spectrogram(self, x: Tensor) -> Tensor:
        """Samples to images within 0..1 where the recipe asks for it."""
        if self.log_mel is None:
            return x
        mel = self.recipe.log_mel
        return (self.log_mel(x) - mel.db_min) / (mel.db_max - mel.db_min)

    def normalize(self, x: Tensor) -> Tensor:
        """Shift and scale by the training clips' or ImageNet's statistics."""
        if self.normalization == "none":
            return x
        scale = 1 / self.std
        return torch.addcmul(-self.mean * scale, x, scale)  # one pass over a batch that is bound by memory

    def forward(self, stored: Tensor) -> Tensor:
        """All three steps without augmentation: what evaluation and prediction feed to the model."""
        return self.normalize(self.spectrogram(self.decode(stored)))

    @torch.no_grad()
    def fit(self, rows: Rows, indices: Sequence[int] | np.ndarray) -> None:
        """Take mean and standard deviation from these clips, the training clips; only where normalization is `train`."""
        if self.normalization != "train":
            return
        count, total, squares = 0, 0.0, 0.0
        for start in range(0, len(indices), CHUNK):
            stored = torch.from_numpy(rows.take(indices[start : start + CHUNK]))
            x = self.spectrogram(self.decode(stored.to(self.mean.device))).double()
            count, total, squares = count + x.numel(), total + x.sum().item(), squares + x.square().sum().item()
        mean = total / count
        self.mean.fill_(mean)
        self.std.fill_(max(squares / count - mean**2, 1e-12) ** 0.5)
