"""Backbones: any classifier of torchvision or timm, whole but for its classifier, with a new head."""

import socket
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError

import pytest
import torch
from torch import nn

from esc50.errors import ConfigError, DataError
from esc50.models.backbones import TimmNet, TorchvisionNet, make_head

LIGHT = ("resnet18", "squeezenet1_1", "mobilenet_v3_small", "googlenet")
HEAVY = (
    "vgg11",
    "densenet121",
    "inception_v3",
    "efficientnet_b0",
    "shufflenet_v2_x0_5",
    "mnasnet0_5",
    "alexnet",
    "regnet_y_400mf",
    "convnext_tiny",
    "swin_t",
    "vit_b_16",
    "maxvit_t",
)
ONE_OF_EACH_FAMILY = (*LIGHT, *(pytest.param(name, marks=pytest.mark.slow) for name in HEAVY))
FIXED_SIZE = {"vit_b_16", "maxvit_t"}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty weights cache of torch, and no network."""

    def refuse(*args, **kwargs):
        raise URLError("no route to host")

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(torch.hub, "urlopen", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    return folder


def file_name(name: str) -> str:
    from torchvision.models import get_model_weights

    return get_model_weights(name).DEFAULT.url.rpartition("/")[2]


@pytest.mark.parametrize("name", ONE_OF_EACH_FAMILY)
def test_every_family_takes_spectrograms_and_learns_with_all_it_has(name):
    net, x = TorchvisionNet(num_classes=7, name=name, weights=None), torch.randn(2, 1, 128, 96)
    seen = []
    net.body.register_forward_pre_hook(lambda _, inputs: seen.append(tuple(inputs[0].shape)))
    net.eval()
    with torch.no_grad():
        out = net(x)
        assert out["logits"].shape == (2, 7)
        assert out["embedding"].dim() == 2
        assert torch.equal(net(x.repeat(1, 3, 1, 1))["logits"], out["logits"])  # grey is the same in all channels
    assert set(seen) == {(2, 3, 224, 224) if name in FIXED_SIZE else (2, 3, 128, 96)}
    net.train()
    logits = net(x)["logits"]
    assert logits.shape == (2, 7)
    logits.square().sum().backward()
    # An auxiliary classifier, or a layer behind the one that was replaced, would be left without.
    assert [key for key, parameter in net.named_parameters() if parameter.grad is None] == []
    assert all(parameter.shape[0] != 1000 for parameter in net.parameters())


@pytest.mark.slow
def test_every_classifier_of_torchvision_takes_spectrograms():
    """On the meta device, which computes shapes alone; RegNets cannot be built there."""
    from torchvision import models

    failed = {}
    for name in models.list_models(module=models):
        if name.startswith("regnet"):
            continue
        with torch.device("meta"), torch.no_grad():
            shape = TorchvisionNet(num_classes=7, name=name, weights=None).eval()(torch.empty(2, 1, 128, 96))["logits"].shape
        if shape != (2, 7):
            failed[name] = shape
    assert failed == {}


def test_the_head_of_the_book():
    """Programming PyTorch for Deep Learning, chapter 4: Linear 500, ReLU, Dropout, Linear."""
    head = TorchvisionNet(num_classes=50, name="resnet18", weights=None, hidden=500, dropout=0.3).head
    assert [type(layer) for layer in head] == [nn.Linear, nn.ReLU, nn.Dropout, nn.Linear]
    assert (head[0].in_features, head[0].out_features) == (512, 500)
    assert head[2].p == 0.3
    assert (head[3].in_features, head[3].out_features) == (500, 50)


def test_without_a_hidden_layer_the_head_is_dropout_and_one_linear():
    head = make_head(12, num_classes=3, hidden=None, dropout=0.4)
    assert [type(layer) for layer in head] == [nn.Dropout, nn.Linear]
    assert head[1].weight.shape == (3, 12)


def test_an_unknown_name_is_refused_with_a_hint():
    with pytest.raises(
        ConfigError,
        match=r"model\.name=resnet19: torchvision has no such classifier; resnet18, .*three of"
        r" the \d+ it has",
    ) as refusal:
        TorchvisionNet(num_classes=3, name="resnet19", weights=None)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["fcn_resnet50", "fasterrcnn_resnet50_fpn", "r3d_18"])
def test_networks_that_do_not_classify_pictures_are_no_classifiers(name):
    with pytest.raises(ConfigError, match="no such classifier"):
        TorchvisionNet(num_classes=3, name=name, weights=None)


def test_unknown_weights_are_refused_with_the_known_ones(cache):
    with pytest.raises(
        ConfigError,
        match=r"model\.weights=IMAGENET: resnet50 has IMAGENET1K_V1, IMAGENET1K_V2, DEFAULT, or"
        " null for none",
    ):
        TorchvisionNet(num_classes=3, name="resnet50", weights="IMAGENET")


@pytest.mark.slow
def test_weights_for_larger_pictures_are_refused_before_they_are_fetched(cache):
    with pytest.raises(
        ConfigError,
        match=r"vit_b_16 is built for pictures of 224 x 224, these weights need 384; choose one"
        " of IMAGENET1K_V1, IMAGENET1K_SWAG_LINEAR_V1, DEFAULT",
    ):
        TorchvisionNet(num_classes=3, name="vit_b_16", weights="IMAGENET1K_SWAG_E2E_V1")


def test_without_cache_and_network_one_line_says_where_the_weights_belong(cache):
    with pytest.raises(DataError) as refusal:
        TorchvisionNet(num_classes=3, name="squeezenet1_1", weights="DEFAULT")
    message = str(refusal.value)
    assert str(cache / file_name("squeezenet1_1")) in message
    assert "no route to host" in message
    assert "model.weights=null" in message
    assert "\n" not in message
    assert list(cache.iterdir()) == []  # nothing that the next run would take for the weights


@pytest.mark.parametrize("content", [b"", b"<!DOCTYPE html><p>404</p>", b"PK\x03\x04" + bytes(100)])
def test_a_broken_file_in_the_cache_is_a_line_not_a_traceback(cache, content):
    (cache / file_name("squeezenet1_1")).write_bytes(content)
    with pytest.raises(DataError) as refusal:
        TorchvisionNet(num_classes=3, name="squeezenet1_1", weights="DEFAULT")
    assert str(cache / file_name("squeezenet1_1")) in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "classifier"),
    [
        ("squeezenet1_1", "classifier.1"),
        ("resnet18", "fc"),
        ("googlenet", "fc"),
        pytest.param("inception_v3", "fc", marks=pytest.mark.slow),
    ],
)
def test_cached_weights_make_the_body_what_torchvision_s_own_network_is(cache, name, classifier):
    from torchvision import models

    init = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    torch.save(models.get_model(name, weights=None, **init).state_dict(), cache / file_name(name))
    original = models.get_model(name, weights="DEFAULT").eval()
    original.set_submodule(classifier, nn.Identity())
    net, x = TorchvisionNet(num_classes=3, name=name, weights="DEFAULT").eval(), torch.randn(2, 3, 96, 96)
    restored = TorchvisionNet(num_classes=3, name=name, weights=None).eval()  # as from a checkpoint
    restored.load_state_dict(net.state_dict())
    with torch.no_grad():
        assert torch.equal(net(x)["embedding"], original(x).flatten(1))
        assert torch.equal(net(x)["logits"], restored(x)["logits"])


def test_timm_networks_take_spectrograms_and_learn_with_all_they_have():
    net = TimmNet(num_classes=7, name="efficientnet_lite0", weights=None, hidden=20)
    assert net.size is None
    logits = net.train()(torch.randn(2, 1, 128, 96))["logits"]
    assert logits.shape == (2, 7)
    logits.square().sum().backward()
    assert [key for key, parameter in net.named_parameters() if parameter.grad is None] == []
    assert [type(layer) for layer in net.head] == [nn.Linear, nn.ReLU, nn.Dropout, nn.Linear]
    assert net.eval()(torch.randn(1, 3, 64, 431))["logits"].shape == (1, 7)


@pytest.mark.parametrize("name", ["mobilenetv3_small_100", "convnext_atto"])
def test_timm_networks_with_a_layer_before_their_classifier_keep_it(name):
    net = TimmNet(num_classes=7, name=name, weights=None).eval()
    with torch.no_grad():
        found = net(torch.zeros(1, 1, 64, 128))
    assert found["logits"].shape == (1, 7)
    torch.testing.assert_close(net.head(found["embedding"]), found["logits"])


def test_timm_networks_of_fixed_size_get_resized_input():
    net = TimmNet(num_classes=7, name="vit_tiny_patch16_224", weights=None).eval()
    assert net.size == (224, 224)
    with torch.no_grad():
        assert net(torch.randn(2, 1, 128, 96))["logits"].shape == (2, 7)


def test_timm_from_scratch_asks_no_network(cache):
    assert TimmNet(num_classes=2, name="efficientnet_lite0", weights=None).head[-1].out_features == 2


def test_timm_without_cache_and_network_is_one_line(cache, tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf"))
    with pytest.raises(
        DataError,
        match=r"the weights of efficientnet_lite0 are not in timm's cache and could not be"
        r" downloaded \(\w+\); model\.weights=null trains from scratch",
    ) as refusal:
        TimmNet(num_classes=2, name="efficientnet_lite0", weights="DEFAULT")
    assert "\n" not in str(refusal.value)


def test_a_name_unknown_to_timm_is_refused():
    with pytest.raises(ConfigError, match=r"model\.name=efficientnet_lite9: timm has no such model"):
        TimmNet(num_classes=2, name="efficientnet_lite9", weights=None)


def test_without_timm_the_command_to_install_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ConfigError, match=r'needs timm, which is not installed; pip install "esc50\[timm\]"'):
        TimmNet(num_classes=2, name="efficientnet_lite0", weights=None)


@pytest.mark.slow
def test_torchvision_networks_do_without_timm_and_the_other_way_round():
    program = (
        "import sys; from esc50.models.backbones import TorchvisionNet;"
        "assert not {'timm', 'torchvision'} & set(sys.modules);"
        "TorchvisionNet(num_classes=2, name='squeezenet1_1', weights=None); assert 'timm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
