"""Batches: dict samples, whole batches at once, in an order that seed and epoch alone decide."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from esc50.batches import ClipBatches, ClipDataset, EpochSampler, WholeBatches, oversampled
from esc50.data.clip import Clip
from esc50.data.folds import make_split
from esc50.features.rows import PackedRows
from esc50.models.audionet import AudioNet
from esc50.models.melcnn import MelCNN


def clips_of(*targets: int, folds: int = 5) -> tuple[Clip, ...]:
    """One clip a target, folds 1, 2, ... in turn."""
    return tuple(
        Clip(
            filename=f"{number:03d}.wav",
            path=Path(f"{number:03d}.wav"),
            target=target,
            category=f"class {target}",
            fold=number % folds + 1,
            source=str(number),
        )
        for number, target in enumerate(targets)
    )


def rows_of(clips: tuple[Clip, ...], shape: tuple[int, ...] = (3, 5), dtype: type = np.uint8) -> PackedRows:
    """Rows filled with the clip's number, kept in another order than that of the clips."""
    order = np.random.default_rng(0).permutation(len(clips))
    packed = np.empty((len(clips), *shape), dtype=dtype)
    packed[order] = np.arange(len(clips), dtype=dtype).reshape(-1, *[1] * len(shape))
    return PackedRows(packed, order, memory_limit=0)


def data_of(targets: list[int], *, batch_size: int = 4, protocol: str = "holdout", **how) -> ClipBatches:
    clips = clips_of(*targets)
    return ClipBatches(
        clips, rows_of(clips), make_split(clips, protocol=protocol, fold=5), batch_size=batch_size, seed=how.pop("seed", 3), **how
    )


def order_of(loader, *, epoch: int = 0) -> list[list[int]]:
    """Clip numbers batch by batch, with the epoch set as Lightning sets it."""
    loader.batch_sampler.sampler.set_epoch(epoch)
    return [batch["index"].tolist() for batch in loader]


def flat(batches: list[list[int]]) -> list[int]:
    return [number for batch in batches for number in batch]


@pytest.mark.parametrize(("shape", "dtype", "wanted"), [((3, 5), np.uint8, torch.uint8), ((7,), np.int16, torch.int16)])
def test_samples_and_batches_are_dicts_of_tensors(shape, dtype, wanted):
    clips = clips_of(0, 1, 2, 0, 1)
    dataset = ClipDataset(rows_of(clips, shape, dtype), np.array([clip.target for clip in clips]), [4, 2, 0])
    assert len(dataset) == 3
    sample, batch = dataset[1], dataset.__getitems__([0, 1])
    assert list(sample) == list(batch) == ["input", "target", "index"]
    assert (sample["input"].shape, sample["target"].shape, sample["index"].shape) == (shape, (), ())
    assert (batch["input"].shape, batch["target"].shape, batch["index"].shape) == ((2, *shape), (2,), (2,))
    for values in (sample, batch):
        assert (values["input"].dtype, values["target"].dtype, values["index"].dtype) == (wanted, torch.int64, torch.int64)


def test_a_batch_at_once_equals_samples_stacked():
    clips = clips_of(0, 1, 2, 0, 1, 2)
    dataset = ClipDataset(rows_of(clips), np.array([clip.target for clip in clips]), [5, 3, 1, 0])
    positions = [2, 0, 3, 2]
    batch, samples = dataset.__getitems__(positions), [dataset[position] for position in positions]
    for key, values in batch.items():
        assert torch.equal(values, torch.stack([sample[key] for sample in samples]))


@pytest.mark.parametrize("role", ["train", "val", "test"])
def test_index_names_the_clip_that_input_and_target_come_from(role):
    data = data_of([0, 1, 2] * 10)
    clips, seen = clips_of(*[0, 1, 2] * 10), set()
    loader = data.train_dataloader() if role == "train" else data.in_order(role)
    for batch in loader:
        assert (batch["input"] == batch["index"].reshape(-1, 1, 1)).all()  # rows are filled with their clip's number
        assert batch["target"].tolist() == [clips[number].target for number in batch["index"]]
        seen |= {clips[number].filename for number in batch["index"]}
    assert seen == {clip.filename for clip in data.split.roles()[role]}


def test_the_order_is_a_function_of_seed_and_epoch():
    loader = data_of([0, 1] * 20).train_dataloader()
    first = order_of(loader, epoch=0)
    torch.rand(1)  # the state of no other generator matters
    assert order_of(loader, epoch=5) != first
    assert order_of(loader, epoch=0) == first
    assert order_of(data_of([0, 1] * 20).train_dataloader(), epoch=0) == first
    assert order_of(data_of([0, 1] * 20, seed=4).train_dataloader(), epoch=0) != first
    assert flat(first) != sorted(flat(first))
    assert sorted(flat(first)) == sorted(flat(order_of(loader, epoch=5)))


def test_epochs_are_no_rotations_of_one_order():
    """Every clip gets another neighbour from epoch to epoch."""
    sampler = EpochSampler(range(50), seed=0)
    pairs = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        order = list(sampler)
        pairs.append(set(pairwise(order)))
    assert len(pairs[0] & pairs[1]) < 10


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
def test_workers_change_nothing():
    epochs = {}
    for num_workers in (0, 1, 2):
        loader = data_of([0, 1, 2] * 7, num_workers=num_workers).train_dataloader()
        epochs[num_workers] = [order_of(loader, epoch=epoch) for epoch in range(2)]
        batch = next(iter(loader))
        assert (batch["input"] == batch["index"].reshape(-1, 1, 1)).all()
    assert epochs[0] == epochs[1] == epochs[2]
    assert epochs[0][0] != epochs[0][1]


@pytest.mark.parametrize(("num_clips", "world"), [(12, 2), (12, 3), (13, 2), (10, 4), (1, 3)])
def test_process_r_of_w_gets_every_wth_clip_of_the_one_order(num_clips, world):
    def order(**which) -> list[int]:
        sampler = EpochSampler(range(num_clips), seed=1, **which)
        sampler.set_epoch(2)
        assert len(list(sampler)) == len(sampler)
        return list(sampler)

    whole, parts = order(), [order(rank=rank, world=world) for rank in range(world)]
    assert len({len(part) for part in parts}) == 1  # else one process would wait for the others for ever
    dealt = [number for together in zip(*parts, strict=True) for number in together]
    assert dealt[:num_clips] == whole
    assert set(dealt) == set(range(num_clips))


def test_only_training_is_divided_among_processes():
    data = data_of([0, 1] * 20)
    data.trainer = SimpleNamespace(global_rank=1, world_size=2)
    assert len(flat(order_of(data.train_dataloader()))) == len(data.split.train) / 2
    assert len(flat([batch["index"].tolist() for batch in data.in_order("test")])) == len(data.split.test)


@pytest.mark.parametrize(
    ("num_clips", "batch_size", "sizes"),
    [
        (9, 8, [9]),
        (17, 8, [8, 9]),
        (16, 8, [8, 8]),
        (10, 8, [8, 2]),
        (7, 8, [7]),
        (1, 8, [1]),
        (8, 8, [8]),
        (3, 2, [3]),
        (5, 1, [1, 1, 1, 1, 1]),
    ],
)
def test_a_last_batch_of_one_joins_the_batch_before(num_clips, batch_size, sizes):
    batches = WholeBatches(EpochSampler(range(num_clips), seed=0), batch_size)
    found = list(batches)
    assert [len(batch) for batch in found] == sizes
    assert len(batches) == len(sizes)
    assert sorted(flat(found)) == list(range(num_clips))


def test_batch_normalisation_trains_on_nine_clips_in_batches_of_eight():
    """It refuses a single value a channel, so no clip must be left over."""
    data, net = data_of([0, 1, 2] * 5, batch_size=8), nn.Sequential(nn.Flatten(), nn.Linear(15, 4), nn.BatchNorm1d(4))
    assert len(data.split.train) == 9
    assert sum(len(net(batch["input"].float())) for batch in data.train_dataloader()) == 9


def test_the_networks_train_on_batches_of_one():
    data, audionet, melcnn = data_of([0, 1, 2] * 5, batch_size=1), AudioNet(num_classes=3), MelCNN(num_classes=3)
    for batch in data.train_dataloader():
        assert audionet(batch["input"].float().flatten(1))["logits"].shape == (1, 3)
        assert melcnn(torch.randn(1, 1, 32, 32))["logits"].shape == (1, 3)


def test_the_joined_batch_is_told(caplog):
    with caplog.at_level("INFO", logger="esc50"):
        data_of([0, 1, 2] * 5, batch_size=8).train_dataloader()
    assert "joins the batch before" in caplog.text
    caplog.clear()
    with caplog.at_level("INFO", logger="esc50"):
        data_of([0, 1, 2] * 5, batch_size=9).train_dataloader()
    assert caplog.text == ""


def test_oversampling_balances_classes_and_keeps_every_clip():
    targets = [0] * 7 + [1] * 2 + [2] * 5
    positions = oversampled(targets)
    assert Counter(targets[position] for position in positions) == {0: 7, 1: 7, 2: 7}
    assert set(positions) == set(range(len(targets)))
    repeats = Counter(positions)
    assert {repeats[position] for position in range(7, 9)} <= {3, 4}  # two clips share seven places evenly
    assert all(repeats[position] == 1 for position in range(7))


def test_oversampling_is_for_training_only():
    targets = [0] * 45 + [1] * 5
    data = data_of(targets, balance="oversample")
    numbers = flat(order_of(data.train_dataloader()))
    assert Counter(targets[number] for number in numbers) == {0: 27, 1: 27}
    assert {clip.filename for clip in data.split.train} == {f"{number:03d}.wav" for number in numbers}
    for role in ("val", "test"):
        assert sum(len(batch["index"]) for batch in data.in_order(role)) == len(data.split.roles()[role])


@pytest.mark.parametrize("role", ["val", "test"])
def test_validation_and_test_come_in_the_split_s_order_every_time(role):
    data = data_of([0, 1] * 20, batch_size=3)
    loader = data.val_dataloader() if role == "val" else data.test_dataloader()
    for _ in range(2):
        batches = [batch["index"].tolist() for batch in loader]
        assert [f"{number:03d}.wav" for number in flat(batches)] == [clip.filename for clip in data.split.roles()[role]]
        assert [len(batch) for batch in batches] == [3, 3, 2]


def test_a_role_without_clips_has_no_batches():
    official, everything = data_of([0, 1] * 5, protocol="official"), data_of([0, 1] * 5, protocol="all")
    assert official.val_dataloader() == everything.val_dataloader() == everything.test_dataloader() == []
    assert sorted(flat(order_of(everything.train_dataloader()))) == list(range(10))
