"""Gradient checkpointing changes memory and time, and nothing else."""

import copy
import logging

import pytest
import torch
from torch import nn

from esc50.models.audionet import AudioNet
from esc50.models.backbones import TorchvisionNet
from esc50.models.melcnn import MelCNN
from esc50.runs import train as run
from esc50.training.recompute import checkpoint_blocks


class Dropping(nn.Module):
    """Blocks with dropout inside, whose masks must be the same in both computations."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(nn.Sequential(nn.Linear(12, 12), nn.BatchNorm1d(12), nn.Dropout(0.5)) for _ in range(3)))
        self.head = nn.Linear(12, 4)

    def forward(self, x):
        return {"logits": self.head(self.blocks(x))}


CASES = [
    (lambda: AudioNet(num_classes=4), (4, 4000), 4),
    (lambda: MelCNN(num_classes=4, channels=(4, 8, 8, 8)), (4, 1, 32, 64), 3),
    (lambda: TorchvisionNet(num_classes=4, name="resnet18", weights=None), (4, 1, 32, 64), 8),
    (Dropping, (8, 12), 3),
]


@pytest.mark.parametrize(("make", "shape", "num_blocks"), CASES, ids=["audionet", "melcnn", "resnet18", "dropout"])
def test_gradients_and_statistics_equal_those_of_the_plain_model(make, shape, num_blocks):
    torch.manual_seed(0)
    plain = make().train()
    again = copy.deepcopy(plain)
    assert checkpoint_blocks(again) == num_blocks
    x = torch.randn(shape)
    for model in (plain, again):
        torch.manual_seed(1)
        model(x)["logits"].square().sum().backward()
    for (name, one), (_, other) in zip(plain.named_parameters(), again.named_parameters(), strict=True):
        torch.testing.assert_close(other.grad, one.grad, msg=name)
        assert other.grad.abs().sum() > 0 or one.grad.abs().sum() == 0, name
    for (name, one), (_, other) in zip(plain.named_buffers(), again.named_buffers(), strict=True):
        assert torch.equal(one, other), name


def test_the_first_block_learns_although_its_input_needs_no_gradient():
    model = AudioNet(num_classes=2).train()
    checkpoint_blocks(model)
    model(torch.randn(2, 2000))["logits"].sum().backward()
    assert model.blocks[0].conv.weight.grad.abs().sum() > 0


def test_names_of_parameters_stay_so_that_checkpoints_fit():
    plain, again = AudioNet(num_classes=2), AudioNet(num_classes=2)
    checkpoint_blocks(again)
    assert plain.state_dict().keys() == again.state_dict().keys()


def test_activations_are_forgotten():
    def saved(model: nn.Module) -> int:
        sizes = []
        hooks = torch.autograd.graph.saved_tensors_hooks(lambda tensor: sizes.append(tensor.numel()) or tensor, lambda t: t)
        with hooks:
            model(torch.randn(2, 20000))["logits"].sum()
        return sum(sizes)

    plain, again = AudioNet(num_classes=2).train(), AudioNet(num_classes=2).train()
    checkpoint_blocks(again)
    assert saved(again) < saved(plain) / 3


def test_a_run_learns_the_same_with_and_without(compose, tiny, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    weights = []
    for switch in ("false", "true"):
        folder = tmp_path / switch
        run.train(
            compose(
                *tiny,
                "watch=none",
                "model=melcnn",
                "trainer.max_epochs=2",
                "trainer.precision=float32",
                f"model.gradient_checkpointing={switch}",
            ),
            folder,
        )
        weights.append(torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"])
    assert "gradient checkpointing of 1 blocks" in caplog.messages  # the second of two: the first is too cheap
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, msg=name)
