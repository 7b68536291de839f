"""Does a network take inputs of some shape? Found out without computing anything."""

import copy

import torch
from torch import nn


def accepts(net: nn.Module, shape: tuple[int, ...]) -> bool:
    """Try `shape` on a copy without memory, where only shapes are computed."""
    probe = copy.deepcopy(net).to("meta").eval()
    try:
        with torch.no_grad():
            probe(torch.empty(shape, device="meta"))
    except (RuntimeError, AssertionError, ValueError):
        return False
    return True
