"""Embeddings of clips computed once, for as long as the body that makes them is frozen."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from esc50.batches import ClipDataset


class Embeddings:
    """Embeddings by the clip's number in the data set, on the device where they were made."""

    def __init__(self, indices: Tensor, values: Tensor):
        self._values = values
        self._row = torch.zeros(int(indices.max()) + 1, dtype=torch.long)
        self._row[indices] = torch.arange(len(indices))
        self._row = self._row.to(values.device)

    def of(self, index: Tensor) -> Tensor:
        """`[batch]` data set numbers to `[batch, features]`."""
        return self._values[self._row[index]]


@torch.no_grad()
def embed_all(
    embed: Callable[[Tensor], Tensor],
    dataset: ClipDataset,
    *,
    batch_size: int,
    device: torch.device,
    context: Callable[[], AbstractContextManager],
) -> Embeddings:
    """Embed every clip of `dataset`, in its own order, so that the values do not depend on when training began.

    `embed`: stored input `[batch, ...]` to `[batch, features]`; `context` is entered around it (precision).
    """
    values = []
    for start in range(0, len(dataset), batch_size):
        stored = dataset.__getitems__(range(start, min(start + batch_size, len(dataset))))["input"]
        with context():
            values.append(embed(stored.to(device)))
    return Embeddings(torch.from_numpy(dataset.indices), torch.cat(values))
