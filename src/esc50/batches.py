"""From stored rows to batches: whole batches at once, in an order that seed and epoch alone decide."""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import lightning as L
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from esc50.augment.draws import seed_of
from esc50.data.clip import Clip
from esc50.data.folds import Split
from esc50.features.rows import Rows

log = logging.getLogger(__name__)

BALANCES = ("none", "oversample")

Batch = TypeVar("Batch")


class ClipDataset(Dataset[dict[str, Tensor]]):
    """Dict samples of some of a data set's clips: `input` as stored, `target` int64, `index` int64 (the clip's number in
    the whole data set, so that anything later can name the clip). Asked for a list it gives a batch in one go."""

    def __init__(self, rows: Rows, targets: np.ndarray, indices: Sequence[int]):
        self._rows, self._targets, self.indices = rows, np.asarray(targets), np.asarray(indices, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, position: int) -> dict[str, Tensor]:
        return {key: values[0] for key, values in self.__getitems__([position]).items()}

    def __getitems__(self, positions: Sequence[int]) -> dict[str, Tensor]:
        """The batch of these positions: `input` `[batch, ...]`, `target` `[batch]`, `index` `[batch]`."""
        indices = self.indices[np.asarray(positions)]
        return {
            "input": torch.from_numpy(self._rows.take(indices)),
            "target": torch.from_numpy(self._targets[indices]),
            "index": torch.from_numpy(indices),
        }


def as_it_is(batch: Batch) -> Batch:
    """Collate function for samples that arrive as a batch already."""
    return batch


class EpochSampler(Sampler[int]):
    """A new order every epoch, the same for a (seed, epoch) wherever and however often it is asked for.

    `positions` may name a position several times (oversampling). Process `rank` of `world` gets every `world`-th of the
    one order, which is lengthened from its start so that all get equally many.
    """

    def __init__(self, positions: Sequence[int], *, seed: int, rank: int = 0, world: int = 1):
        self._positions, self._seed, self._rank, self._world = np.asarray(positions), seed, rank, world
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Called by Lightning before each epoch, also the first after a resume."""
        self._epoch = epoch

    def __len__(self) -> int:
        return -(-len(self._positions) // self._world)

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(seed_of(self._seed, "order", self._epoch))
        order = self._positions[torch.randperm(len(self._positions), generator=generator).numpy()]
        order = np.resize(order, len(self) * self._world)
        return iter(order[self._rank :: self._world].tolist())


class WholeBatches(Sampler[list[int]]):
    """Batches of `batch_size`; a last one of a single clip, which batch normalisation cannot use, joins the one before."""

    def __init__(self, sampler: EpochSampler, batch_size: int):
        self.sampler, self.batch_size = sampler, batch_size

    @property
    def joins_last(self) -> bool:
        return self.batch_size > 1 and len(self.sampler) > self.batch_size and len(self.sampler) % self.batch_size == 1

    def __len__(self) -> int:
        return -(-len(self.sampler) // self.batch_size) - self.joins_last

    def __iter__(self) -> Iterator[list[int]]:
        order = list(self.sampler)
        for number in range(len(self)):
            stop = len(order) if number == len(self) - 1 else (number + 1) * self.batch_size
            yield order[number * self.batch_size : stop]


def oversampled(targets: Sequence[int]) -> list[int]:
    """Positions with those of small classes repeated until every class is as large as the largest."""
    of_class = defaultdict(list)
    for position, target in enumerate(targets):
        of_class[int(target)].append(position)
    largest = max(map(len, of_class.values()))
    return [position for target in sorted(of_class) for position in np.resize(of_class[target], largest).tolist()]


class ClipBatches(L.LightningDataModule):
    """Data loaders for the roles of a split.

    `clips` is the whole data set, in the order of `rows`. Training batches come shuffled, the others in the order of the
    split. Under several processes only training is divided among them.
    """

    def __init__(
        self,
        clips: Sequence[Clip],
        rows: Rows,
        split: Split,
        *,
        batch_size: int,
        seed: int,
        balance: str = "none",
        num_workers: int = 0,
    ):
        super().__init__()
        assert balance in BALANCES
        self.clips, self.rows = tuple(clips), rows
        self.split, self._batch_size, self._seed, self._balance = split, batch_size, seed, balance
        self._num_workers = num_workers
        number = {clip.filename: index for index, clip in enumerate(clips)}
        targets = np.array([clip.target for clip in clips], dtype=np.int64)
        self.datasets = {
            role: ClipDataset(rows, targets, [number[clip.filename] for clip in members])
            for role, members in split.roles().items()
        }

    def train_dataloader(self) -> DataLoader:
        dataset = self.datasets["train"]
        positions: Sequence[int] = range(len(dataset))
        if self._balance == "oversample":
            targets = [clip.target for clip in self.split.train]
            positions = oversampled(targets)
            log.info(
                "oversampling: %d training clips become %d, class sizes were %s",
                len(targets),
                len(positions),
                sorted(Counter(targets).values()),
            )
        rank, world = (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)
        batches = WholeBatches(EpochSampler(positions, seed=self._seed, rank=rank, world=world), self._batch_size)
        if batches.joins_last:
            log.info("the last training batch would hold one clip; it joins the batch before")
        return self._loader(dataset, batch_sampler=batches)

    def val_dataloader(self) -> DataLoader | list:
        return self.in_order("val") if self.split.val else []

    def test_dataloader(self) -> DataLoader | list:
        return self.in_order("test") if self.split.test else []

    def in_order(self, role: str) -> DataLoader:
        """The clips of one role, each once, in the order of the split."""
        return self._loader(self.datasets[role], batch_size=self._batch_size)

    def _loader(self, dataset: ClipDataset, **how: Any) -> DataLoader:
        return DataLoader(
            dataset, collate_fn=as_it_is, num_workers=self._num_workers, persistent_workers=self._num_workers > 0, **how
        )


def batches_of(trainer: L.Trainer) -> ClipBatches:
    """The data that a trainer works on."""
    return trainer.datamodule  # type: ignore[attr-defined]  # Lightning sets it without a declaration
