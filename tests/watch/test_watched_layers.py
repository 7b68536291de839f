"""The layers that are watched are those that a person would name, and a sample stands for all values."""

import numpy as np
import pytest
import torch
from torch import nn

from esc50.errors import ConfigError
from esc50.models.audionet import AudioNet
from esc50.models.backbones import TorchvisionNet
from esc50.models.melcnn import MelCNN
from esc50.watch.activations import without_inputs
from esc50.watch.layers import MOST_BLOCKS, MOST_VALUES, is_shown, sample, watched_layers


def test_leaf_blocks_of_the_networks_are_their_convolutions_with_all_that_belongs_to_them():
    assert list(watched_layers(MelCNN(num_classes=3), None)) == [
        "stem",
        "blocks.0.1",
        "blocks.0.2",
        "blocks.1.1",
        "blocks.1.2",
        "blocks.2.1",
        "blocks.2.2",
        "head",
    ]
    assert list(watched_layers(AudioNet(num_classes=3), None)) == ["blocks.0", "blocks.1", "blocks.2", "blocks.3", "head"]


def test_a_large_network_is_divided_no_finer_than_can_be_looked_at():
    resnet = TorchvisionNet(num_classes=3, name="resnet50", weights=None, hidden=8)
    blocks = [f"body.layer{number}.{block}" for number, count in enumerate((3, 4, 6, 3), 1) for block in range(count)]
    layers = watched_layers(resnet, None)
    assert list(layers) == ["body.conv1", "body.relu", *blocks, "head.0", "head.1", "head.3"]
    assert list(without_inputs(layers)) == ["body.relu", *blocks, "head.1", "head.3"]
    assert all(layer is resnet.get_submodule(name) for name, layer in layers.items())


def test_dividing_stops_before_there_are_too_many():
    def deep(width: int) -> nn.Sequential:
        return nn.Sequential(*(nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1)) for _ in range(width)))

    assert len(watched_layers(deep(MOST_BLOCKS // 2), None)) == MOST_BLOCKS
    assert list(watched_layers(deep(MOST_BLOCKS // 2 + 1), None)) == [str(i) for i in range(MOST_BLOCKS // 2 + 1)]


def test_a_pattern_chooses_layers_by_name():
    model = MelCNN(num_classes=3)
    assert list(watched_layers(model, "stem.?")) == ["stem.0", "stem.1", "stem.2"]
    assert list(watched_layers(model, ["head", "blocks.*.1.2"])) == ["blocks.0.1.2", "blocks.1.1.2", "blocks.2.1.2", "head"]


def test_a_pattern_that_fits_nothing_is_answered_with_what_there_is():
    with pytest.raises(ConfigError, match=r"a name like conv\* or Stem, .* are stem, blocks\.0\.1,"):
        watched_layers(MelCNN(num_classes=3), ["conv*", "Stem"])


def test_steps_are_shown_by_their_number_and_only_to_somebody(trainer):
    shown = []
    for trainer.global_step in range(7):
        shown.append(is_shown(trainer, 3))
    assert shown == [True, False, False, True, False, False, True]
    trainer.is_global_zero = False
    assert not is_shown(trainer, 3)
    trainer.is_global_zero, trainer.logger = True, None
    assert not is_shown(trainer, 3)


def test_few_values_are_their_own_sample_whatever_their_layout():
    values = torch.arange(120.0).reshape(2, 3, 4, 5)
    channels_last = values.contiguous(memory_format=torch.channels_last)
    for laid_out in (values, channels_last, values[:, :, ::2], values.expand(4, 2, 3, 4, 5)):
        assert sorted(sample(laid_out).tolist()) == sorted(laid_out.flatten().tolist())


@pytest.mark.parametrize("period", [2, 128, 1000])
def test_a_sample_of_many_values_is_spread_like_all_of_them(period):
    number = 200 * MOST_VALUES
    taken = sample(torch.arange(number, dtype=torch.float64))
    assert len(taken) == len(taken.unique()) == MOST_VALUES
    np.testing.assert_allclose(np.quantile(taken, [0.1, 0.5, 0.9]), np.multiply([0.1, 0.5, 0.9], number), rtol=0.01)
    assert (taken % period < period / 2).double().mean().item() == pytest.approx(0.5, abs=0.02)
    assert torch.equal(taken, sample(torch.arange(number, dtype=torch.float64)))
