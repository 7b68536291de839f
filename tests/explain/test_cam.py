"""The map lights what the class rests upon, at the input's size, and leaves the model as it was."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from esc50.errors import ConfigError
from esc50.explain.cam import check_layer, feature_layers, grad_cam
from esc50.models.audionet import AudioNet
from esc50.models.backbones import TorchvisionNet
from esc50.models.melcnn import MelCNN

MEL, FRAMES = 16, 32


class CornerNet(nn.Module):
    """Class 0 rests upon the energy of the lower left quarter, class 1 upon that of the upper right (high frequencies,
    late), class 2 upon nothing; low frequencies are the first rows."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 1, bias=False)
        self.pool = nn.AvgPool2d(4)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 3, bias=False)
        with torch.no_grad():
            self.conv.weight.fill_(1.0)
            self.head.weight.copy_(torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]))

    def forward(self, x):
        where = torch.zeros(1, 4, *x.shape[-2:], device=x.device)
        where[:, 0, : MEL // 2, : FRAMES // 2] = 1
        where[:, 1, MEL // 2 :, FRAMES // 2 :] = 1
        maps = self.norm(self.pool(self.drop(self.conv(x) * where)))
        embedding = maps.mean(dim=(2, 3))
        return {"logits": self.head(embedding), "embedding": embedding}


@pytest.fixture
def net() -> CornerNet:
    torch.manual_seed(0)
    return CornerNet().eval()


@pytest.fixture
def x() -> torch.Tensor:
    return torch.ones(2, 1, MEL, FRAMES)


UPPER_RIGHT = (slice(MEL // 2 + 2, None), slice(FRAMES // 2 + 2, None))  # but for the blur at the edges
LOWER_LEFT = (slice(None, MEL // 2 - 2), slice(None, FRAMES // 2 - 2))
ELSEWHERE = {1: [LOWER_LEFT, (slice(MEL // 2 + 2, None), slice(None, FRAMES // 2 - 2))], 0: [UPPER_RIGHT]}


def test_a_class_that_rests_upon_a_corner_lights_that_corner(net, x):
    for target, bright in ((1, UPPER_RIGHT), (0, LOWER_LEFT)):
        maps = grad_cam(net, x, [target, target])
        assert (maps.shape, maps.dtype) == ((2, MEL, FRAMES), np.float32)
        assert maps.min() == 0 and maps.max() == 1
        assert (maps[:, *bright] > 0.99).all()
        assert all((maps[:, *dark] == 0).all() for dark in ELSEWHERE[target])


def test_each_clip_has_its_own_class_and_its_own_maximum(net, x):
    x[1] *= 3
    maps = grad_cam(net, x, torch.tensor([0, 1]))
    np.testing.assert_allclose(maps[0], grad_cam(net, x[:1], [0])[0])
    np.testing.assert_allclose(maps[1], grad_cam(net, x[1:], [1])[0])
    assert maps.max(axis=(1, 2)).tolist() == [1, 1]


def test_without_a_class_it_is_the_predicted_one(net, x):
    x[0, :, MEL // 2 :] = 0  # leaves the lower rows: class 0
    x[1, :, : MEL // 2] = 0
    np.testing.assert_array_equal(grad_cam(net, x), grad_cam(net, x, [0, 1]))


def test_where_nothing_speaks_for_the_class_the_map_is_empty(net, x):
    assert not grad_cam(net, x, [2, 2]).any()
    with torch.no_grad():
        net.head.weight[1] *= -1  # now the corner speaks against
    assert not grad_cam(net, x, [1, 1]).any()


def test_of_a_diverged_network_the_map_is_empty(net, x):
    with torch.no_grad():
        net.conv.weight.fill_(float("nan"))
    assert not grad_cam(net, x, [0, 1]).any()


def test_the_layer_is_the_last_that_makes_a_map_or_the_one_that_is_named(net, x):
    assert feature_layers(net, x) == ("conv", "drop", "pool", "norm")
    np.testing.assert_array_equal(grad_cam(net, x, [1, 1]), grad_cam(net, x, [1, 1], layer="norm"))
    fine = grad_cam(net, x, [1, 1], layer="drop")  # at full resolution: no blur at the edge of the corner
    assert fine[:, MEL // 2 :, FRAMES // 2 :].all() and fine.sum() == 2 * MEL * FRAMES / 4


def test_a_layer_that_makes_no_map_is_refused_with_names_to_choose_from(net, x):
    for layer in ("nrm", "head"):
        with pytest.raises(ConfigError) as caught:
            grad_cam(net, x, layer=layer)
        message = str(caught.value)
        assert message.startswith(f"layer={layer}: ") and message.endswith("norm, pool, drop, conv") and "\n" not in message
        assert ("did you mean norm?" in message) == (layer == "nrm")
        with pytest.raises(ConfigError):
            check_layer(net, x, layer)
    check_layer(net, x, "conv")


def test_a_model_without_feature_maps_is_refused():
    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(MEL * FRAMES, 2)

        def forward(self, x):
            return {"logits": self.head(x.flatten(1))}

    with pytest.raises(ConfigError, match="makes no feature map"):
        grad_cam(Flat(), torch.ones(1, 1, MEL, FRAMES))


# ---------------------------------------------------------------------- no trace


def hooks_of(model: nn.Module) -> list[int]:
    return [len(hooks) for module in model.modules() for name, hooks in sorted(vars(module).items()) if name.endswith("_hooks")]


@pytest.mark.parametrize(
    "around", [torch.inference_mode, torch.no_grad, torch.enable_grad, lambda: torch.autocast("cpu", dtype=torch.bfloat16)]
)
@pytest.mark.parametrize("frozen", [True, False])
def test_it_works_frozen_in_inference_mode_and_in_autocast_and_leaves_no_trace(net, x, frozen, around):
    expected = grad_cam(net, x, [0, 1])
    net.train()
    net.norm.eval()
    net.conv.requires_grad_(not frozen)
    net.head.weight.grad = torch.full_like(net.head.weight, 3.0)
    net.conv.register_forward_hook(lambda module, inputs, output: None)
    state, random, hooks = copy.deepcopy(net.state_dict()), torch.get_rng_state(), hooks_of(net)
    with around():
        inputs = x * 1.0
        maps = grad_cam(net, inputs, [0, 1])
        grad_enabled, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    np.testing.assert_array_equal(maps, expected)
    assert (grad_enabled, inference) == (around not in (torch.inference_mode, torch.no_grad), around is torch.inference_mode)
    assert [module.training for module in net.modules()] == [True, True, True, True, False, True]
    assert [parameter.requires_grad for parameter in net.parameters()] == [not frozen, True, True, True]
    assert net.conv.weight.grad is None and net.norm.weight.grad is None and (net.head.weight.grad == 3).all()
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random)
    assert hooks_of(net) == hooks and sum(hooks) == 1
    assert not inputs.requires_grad and torch.equal(inputs, torch.ones_like(x))


def test_an_error_on_the_way_leaves_no_trace_either(net, x):
    net.train()
    broken = torch.ones(1, 2, MEL, FRAMES)  # two channels
    with pytest.raises(RuntimeError):
        grad_cam(net, broken)
    assert not any(hooks_of(net)) and all(module.training for module in net.modules())


def test_a_compiled_model_has_the_same_map_and_stays_compiled(net, x):
    expected = grad_cam(net, x, [0, 1])
    calls = []

    def backend(graph, inputs):
        calls.append(1)
        return graph.forward

    net.compile(backend=backend)
    with torch.no_grad():
        logits = net(x)["logits"]
        compiled = net._compiled_call_impl
        np.testing.assert_array_equal(grad_cam(net, x, [0, 1]), expected)
        assert net._compiled_call_impl is compiled is not None
        before = len(calls)
        assert torch.equal(net(x)["logits"], logits)
    assert len(calls) == before == 1  # nothing was compiled anew


# ---------------------------------------------------------------------- the project's own networks


@pytest.mark.parametrize(
    ("make", "shape", "layer"),
    [
        (lambda: MelCNN(num_classes=3, channels=(8, 16)), (2, 1, 32, 51), "blocks"),
        (lambda: AudioNet(num_classes=3), (2, 8000), "blocks"),
        (lambda: AudioNet(num_classes=3, activation="leaky_relu"), (1, 2100), "blocks.3.norm"),  # pooled to one place
        (lambda: TorchvisionNet(num_classes=3, name="resnet18", weights=None), (2, 3, 64, 101), "body.layer4"),
        (lambda: TorchvisionNet(num_classes=3, name="densenet121", weights=None), (1, 1, 64, 101), "body.features"),
    ],
)
def test_maps_have_the_size_of_the_input(make, shape, layer):
    torch.manual_seed(1)
    model, x = make(), 0.3 * torch.randn(shape)
    assert feature_layers(model, x)[-1] == layer
    of_class = [grad_cam(model, x, [target] * len(x)) for target in range(3)]
    for maps in of_class:
        assert maps.shape == (shape if len(shape) == 2 else (shape[0], *shape[-2:])) and maps.dtype == np.float32
        assert maps.min() >= 0 and np.isin(maps.reshape(len(maps), -1).max(axis=1), (0, 1)).all()
    assert any(maps.any() for maps in of_class)  # of an untrained network, some have nothing that speaks for them


def test_a_burst_in_a_waveform_is_found_by_a_network_that_listens_for_loudness():
    class Loudness(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv1d(1, 2, 64, stride=32, bias=False)
            with torch.no_grad():
                self.conv.weight.copy_(torch.stack([torch.ones(1, 64), torch.zeros(1, 64)]))

        def forward(self, x):
            return {"logits": self.conv(x[:, None].abs()).mean(dim=-1)}

    x = torch.zeros(1, 4096)
    x[0, 3000:3200] = 1
    (map_,) = grad_cam(Loudness(), x, [0])
    assert map_.shape == (4096,) and 3000 <= map_.argmax() < 3200
    assert not map_[:2800].any() and not map_[3400:].any()
