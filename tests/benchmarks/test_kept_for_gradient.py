"""What is said to be kept for the gradient is what autograd keeps."""

import torch
from torch import nn

from esc50.benchmarks.recompute import kept_for_gradient


class Squares(nn.Module):
    """Keeps its input of so many bytes for the gradient, and two of the weights' size that are not counted."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1000))

    def forward(self, x):
        return {"logits": (x * self.weight).square()}


def test_tensors_count_once_and_weights_do_not():
    # The product keeps x, whose gradient needs no weight; the square keeps the product.
    assert kept_for_gradient(Squares(), torch.ones(8, 1000), bfloat16=False) == 2 * 8 * 1000 * 4
