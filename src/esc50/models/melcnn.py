"""MelCNN: a small convolutional network on the log-mel spectrogram, trained from scratch."""

from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from esc50.config.kinds import Share, Sizes


def _conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class MelCNN(nn.Module):
    """Pairs of 3x3 convolutions with batch normalisation, each pair after the stem halving time and frequency by average
    pooling, as in PANNs (Kong et al. 2020, arXiv 1912.10211) but with a striding stem and fewer channels, so that two
    cores train it in minutes.

    Takes `[batch, in_channels, mel, frames]` of any size; an image of which the poolings would leave nothing is padded with
    zeros. Frequency is averaged, time is pooled by mean plus maximum, so that a short event counts as much as a steady
    sound. `channels`: of the stem and each pair; `dropout`: before the last layer.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        in_channels: int = 1,
        channels: Sizes = (32, 64, 128, 256),  # type: ignore[assignment]  # a list as default would be shared by all
        dropout: Share = 0.2,
    ):
        super().__init__()
        self.stem = _conv(in_channels, channels[0], kernel=5, stride=2)
        self.blocks = nn.Sequential(
            *(
                nn.Sequential(nn.AvgPool2d(2), _conv(inputs, outputs), _conv(outputs, outputs))
                for inputs, outputs in pairwise(channels)
            )
        )
        self.min_size = 2 ** len(channels) - 1  # bands and frames of which the stem and the poolings leave one
        self.head = nn.Sequential(nn.Dropout(dropout), nn.Linear(channels[-1], num_classes))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        mel, frames = x.shape[-2:]
        if min(mel, frames) < self.min_size:
            x = F.pad(x, (0, max(0, self.min_size - frames), 0, max(0, self.min_size - mel)))
        over_time = self.blocks(self.stem(x)).mean(dim=2)
        embedding = over_time.mean(dim=-1) + over_time.amax(dim=-1)
        return {"logits": self.head(embedding), "embedding": embedding}
