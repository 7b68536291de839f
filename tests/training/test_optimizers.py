"""Parameter groups by depth, and a frozen body that stands still."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hydra import compose, initialize_config_dir
from torch import Tensor, nn

from esc50.assembly.task import build_optimizer
from esc50.models.audionet import AudioNet
from esc50.models.backbones import TorchvisionNet
from esc50.models.melcnn import MelCNN
from esc50.training.optimizers import layer_groups, parameter_groups, set_body_frozen

CONF = Path(__file__).resolve().parents[2] / "conf"
MODELS = {
    "audionet": lambda: AudioNet(num_classes=3),
    "melcnn": lambda: MelCNN(num_classes=3, channels=(4, 8, 8)),
    "squeezenet": lambda: TorchvisionNet(num_classes=3, name="squeezenet1_1", weights=None, hidden=5),
}


GROUPS = ("head", "late", "early")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Net(nn.Module):
    """Two convolutions with batch normalisation and dropout, and a head."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5), nn.Conv1d(4, 4, 3), nn.BatchNorm1d(4)
        )
        self.head = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).mean(dim=-1))


def learn(net: nn.Module, num_steps: int = 3) -> None:
    optimizer = torch.optim.AdamW(parameter_groups(net, lr=0.1, lr_ratio=dict.fromkeys(GROUPS, 1.0)), weight_decay=0.1)
    for _ in range(num_steps):
        optimizer.zero_grad()
        F.cross_entropy(net(torch.randn(8, 1, 20)), torch.arange(8) % 3).backward()
        optimizer.step()


def copy_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def changed(module: nn.Module, before: dict[str, Tensor]) -> set[str]:
    return {name for name, value in module.state_dict().items() if not torch.equal(value, before[name])}


@pytest.mark.parametrize("name", MODELS)
def test_groups_are_disjoint_and_cover_every_parameter(name):
    model = MODELS[name]()
    groups = layer_groups(model)
    assert tuple(groups) == GROUPS
    ids = [id(parameter) for parameters in groups.values() for parameter in parameters]
    assert len(ids) == len(set(ids))
    assert set(ids) == {id(parameter) for parameter in model.parameters()}
    assert [id(parameter) for parameter in groups["head"]] == [id(parameter) for parameter in model.head.parameters()]
    assert abs(len(groups["late"]) - len(groups["early"])) <= 1


def test_early_layers_are_those_next_to_the_input():
    net = Net()
    groups = layer_groups(net)
    assert [id(parameter) for parameter in groups["early"]] == [id(p) for p in net.body[:2].parameters()]
    assert [id(parameter) for parameter in groups["late"]] == [id(p) for p in net.body[2:].parameters()]


def test_each_group_has_its_part_of_the_rate():
    groups = parameter_groups(Net(), lr=0.5, lr_ratio={"early": 0.01, "late": 0.1, "head": 1.0})
    assert {group["name"]: group["lr"] for group in groups} == pytest.approx({"head": 0.5, "late": 0.05, "early": 0.005})
    assert groups[0]["name"] == "head"  # the finder and the reader look at the first group


def test_empty_groups_are_left_out():
    net = nn.Module()
    net.head = nn.Linear(2, 2)
    assert [group["name"] for group in parameter_groups(net, lr=1.0, lr_ratio=dict.fromkeys(GROUPS, 1.0))] == ["head"]


def test_the_book_s_three_rates_are_one_config():
    """Programming PyTorch for Deep Learning, chapter 4, in its meant order: the head learns fastest."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("config", overrides=["optimizer=book", "data=synthetic"])
    optimizer = build_optimizer(cfg)(Net())
    assert isinstance(optimizer, torch.optim.Adam)
    assert {group["name"]: group["lr"] for group in optimizer.param_groups} == pytest.approx(
        {"head": 1e-2, "late": 1e-4, "early": 1e-8}, rel=1e-12
    )


def test_a_frozen_body_stays_as_it_is_to_the_last_bit():
    net = Net().train()
    learn(net)  # statistics of batch normalisation are no longer those of a new network
    set_body_frozen(net, True)
    before = copy_of(net)
    learn(net)
    assert changed(net, before) == {"head.1.weight", "head.1.bias"}


def test_a_frozen_body_is_deterministic_and_the_head_still_drops():
    net = Net().train()
    set_body_frozen(net, True)
    x = torch.randn(4, 1, 20)
    assert torch.equal(net.body(x), net.body(x))
    assert net.head.training
    assert not torch.equal(net(x), net(x))


def test_unfrozen_again_everything_learns():
    net = Net().train()
    set_body_frozen(net, True)
    learn(net)
    set_body_frozen(net, False)
    net.train()
    before = copy_of(net)
    learn(net)
    assert changed(net, before) == set(before)


def test_freezing_in_evaluation_leaves_the_head_in_evaluation():
    net = Net().eval()
    set_body_frozen(net, True)
    assert not any(module.training for module in net.modules())
