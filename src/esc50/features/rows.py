"""Three ways to get at stored values by clip number: from the packed store, computed each time, computed and remembered.

The last two are the book's ways (chapter 6); they are here to be compared with.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from esc50.data.clip import Clip
from esc50.features.recipe import Recipe


class Rows(Protocol):
    """Anything that turns clip numbers into stored values."""

    def take(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """Values of these clips, `[batch, ...]`, uint8 images or int16 samples."""


class PackedRows:
    """Rows of the packed store; held in memory where they fit into `memory_limit` bytes, else read through the map."""

    def __init__(self, packed: np.ndarray, rows: np.ndarray, *, memory_limit: float):
        size = packed[:1].nbytes * len(rows)
        self.in_memory = size <= memory_limit
        if self.in_memory:
            self._values, self._rows = np.ascontiguousarray(packed[rows]), np.arange(len(rows))
        else:
            self._values, self._rows = packed, rows

    def take(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        return self._values[self._rows[np.asarray(indices)]]


class ComputedRows:
    """Values computed from the audio at every access; with `cache_size` > 0 the last so many clips are remembered."""

    def __init__(self, clips: Sequence[Clip], recipe: Recipe, *, cache_size: int = 0):
        self._clips, self._recipe, self._cache_size = clips, recipe, cache_size
        self._cache: OrderedDict[int, np.ndarray] = OrderedDict()

    def take(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        return np.stack([self._one(int(index)) for index in indices])

    def _one(self, index: int) -> np.ndarray:
        if index in self._cache:
            self._cache.move_to_end(index)
            return self._cache[index]
        values = self._recipe.compute(self._clips[index].path)
        if self._cache_size:
            self._cache[index] = values
            if len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)
        return values
