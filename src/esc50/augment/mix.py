"""Mixtures of examples and of their labels."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from esc50.augment.draws import Draws
from esc50.config.kinds import NonNegative
from esc50.errors import ConfigError


def mix(x: Tensor, target_probs: Tensor, *, partner: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """`share` of each example plus the rest of its partner, inputs and label probabilities alike.

    `x`: `[batch, ...]`; `target_probs`: `[batch, classes]`; `partner`: `[batch]` int64; `share`: `[batch]` within 0..1.
    """
    partner, share = partner.to(x.device), share.to(x.device)
    of_input = share.to(x.dtype).reshape(-1, *(1,) * (x.dim() - 1))
    mixed = torch.lerp(x[partner], x, of_input)
    return mixed, torch.lerp(target_probs[partner], target_probs, share.unsqueeze(1))


class Mixup(nn.Module):
    """Mixup (Zhang et al. 2018, arXiv 1710.09412): the share of each example is drawn from Beta(alpha, alpha).

    With `alpha=0`, and in evaluation, nothing is mixed.
    """

    def __init__(self, *, alpha: NonNegative):
        super().__init__()
        if alpha < 0:
            raise ConfigError(f"mixup's alpha is {alpha}; wanted 0 (off) or more")
        self.alpha = alpha

    def forward(self, x: Tensor, target: Tensor, draws: Draws, *, num_classes: int) -> tuple[Tensor, Tensor]:
        """Inputs and label probabilities `[batch, classes]` of the mixture; `target` is `[batch]` int64."""
        target_probs = F.one_hot(target, num_classes).float()
        if not self.training or self.alpha == 0 or len(x) < 2:
            return x, target_probs
        return mix(x, target_probs, partner=draws.permutation(len(x)), share=draws.beta(self.alpha, len(x)))
