"""A model behind its front end: stored values in, logits out."""

import torch
from torch import Tensor, nn

from esc50.features.front_end import FrontEnd


class Listening:
    """What everything with a `model` and a `front_end` does with stored values."""

    model: nn.Module
    front_end: FrontEnd
    channels_last: bool

    def forward(self, stored: Tensor) -> dict[str, Tensor]:
        """Stored input to `logits` `[batch, classes]`, without augmentation."""
        found: dict[str, Tensor] = self.model(self.laid_out(self.front_end(stored)))
        return found

    def laid_out(self, x: Tensor) -> Tensor:
        """`x` in the memory layout that the model wants."""
        return x.contiguous(memory_format=torch.channels_last) if self.channels_last and x.dim() == 4 else x


class Network(Listening, nn.Module):
    """A trained model and its front end, to predict with: no way of learning, and no Lightning."""

    def __init__(self, model: nn.Module, front_end: FrontEnd, *, channels_last: bool = True):
        super().__init__()
        self.model, self.front_end, self.channels_last = model, front_end, channels_last
        if channels_last:
            self.model.to(memory_format=torch.channels_last)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.front_end.mean.device
