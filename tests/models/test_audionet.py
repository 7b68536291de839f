"""AudioNet: any length, any number of classes, logits."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from esc50.errors import ConfigError
from esc50.models.audionet import AudioNet

SAMPLE_RATE = 44100  # Hz
STRIDES = 4 * 4**4  # of the first convolution and the four poolings


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize(("seconds", "num_classes"), [(0.01, 50), (0.3, 2), (1.0, 10), (10.0, 50)])
def test_one_logit_a_class_for_any_length(seconds, num_classes):
    net = AudioNet(num_classes=num_classes).eval()
    with torch.no_grad():
        out = net(torch.randn(2, round(seconds * SAMPLE_RATE)))
    assert out["logits"].shape == (2, num_classes)
    assert out["embedding"].shape == (2, 512)
    assert torch.isfinite(out["logits"]).all()


@pytest.mark.parametrize("num_samples", [1, 1771, 1772, 1773])
def test_around_the_shortest_length_every_clip_trains(num_samples):
    net = AudioNet(num_classes=3).train()
    net(torch.randn(2, num_samples))["logits"].sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in net.parameters())


def test_a_shorter_clip_is_one_with_zeros_behind_it():
    net = AudioNet(num_classes=3).eval()
    x = torch.randn(2, 500)
    with torch.no_grad():
        assert torch.equal(net(x)["logits"], net(F.pad(x, (0, 1272)))["logits"])


def test_outputs_are_logits_not_log_probabilities():
    """The listing's log-softmax before a cross-entropy would be applied twice."""
    with torch.no_grad():
        logits = AudioNet(num_classes=10).eval()(torch.randn(4, 4000))["logits"]
    assert ((logits.exp().sum(dim=1) - 1).abs() > 0.1).all()
    assert (logits > 0).any()  # which no log-probability is


def test_a_shift_by_the_product_of_strides_moves_the_features_by_one_step():
    net = AudioNet(num_classes=3).eval()
    x = torch.randn(1, 8 * STRIDES)
    with torch.no_grad():
        early, late = net.blocks(x[:, None, None]), net.blocks(F.pad(x, (STRIDES, 0))[:, None, None, : x.shape[1]])
    torch.testing.assert_close(late[..., 2:], early[..., 1:-1], atol=1e-5, rtol=1e-5)
    assert (late[..., 2:] - early[..., 2:]).abs().max() > 0.01


def test_the_embedding_is_the_average_over_time():
    net = AudioNet(num_classes=3).eval()
    x = torch.randn(2, SAMPLE_RATE)
    with torch.no_grad():
        features, out = net.blocks(x[:, None, None]), net(x)
    assert features.shape[-1] > 30
    torch.testing.assert_close(out["embedding"], features.mean(dim=(2, 3)))
    torch.testing.assert_close(out["logits"], F.linear(features.mean(dim=(2, 3)), net.head.weight, net.head.bias))


def test_leaky_relu_lets_negative_values_through_and_relu_does_not():
    relu, leaky = AudioNet(num_classes=3).eval(), AudioNet(num_classes=3, activation="leaky_relu").eval()
    leaky.load_state_dict(relu.state_dict())  # the same weights: an activation has none
    x = torch.randn(2, 8000)
    with torch.no_grad():
        assert (relu.blocks[0](x[:, None, None]) >= 0).all()
        assert not torch.allclose(relu(x)["logits"], leaky(x)["logits"])
    activations = [module for module in leaky.modules() if isinstance(module, nn.ReLU | nn.LeakyReLU)]
    assert [type(module) for module in activations] == [nn.LeakyReLU] * 4


def test_the_book_s_four_blocks():
    """Programming PyTorch for Deep Learning, chapter 6: 128, 128, 256, 512 channels, kernels 80, 3, 3, 3, first stride 4."""
    convolutions = [module for module in AudioNet(num_classes=50).modules() if isinstance(module, nn.Conv2d)]
    assert [(c.out_channels, c.kernel_size, c.stride) for c in convolutions] == [
        (128, (1, 80), (1, 4)),
        (128, (1, 3), (1, 1)),
        (256, (1, 3), (1, 1)),
        (512, (1, 3), (1, 1)),
    ]


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_it_computes_what_the_listing_of_1d_layers_computes(activation):
    """Convolution, normalisation, activation, pooling in one dimension, the order of the listing, with the same weights."""
    net = AudioNet(num_classes=3, activation=activation).train()
    act = {"relu": nn.ReLU(), "leaky_relu": nn.LeakyReLU()}[activation]
    x = torch.randn(3, 9000)
    listed = x.unsqueeze(1)
    for block in net.blocks:
        convolved = F.conv1d(listed, block.conv.weight.squeeze(2), stride=block.conv.stride[1])
        normalised = F.batch_norm(convolved, None, None, block.norm.weight, block.norm.bias, training=True)
        listed = F.max_pool1d(act(normalised), 4)
    torch.testing.assert_close(net(x)["embedding"], listed.mean(dim=-1), atol=1e-5, rtol=1e-4)


def test_an_unknown_activation_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"model\.activation is 'gelu'; wanted one of relu, leaky_relu") as refusal:
        AudioNet(num_classes=3, activation="gelu")
    assert "\n" not in str(refusal.value)


def test_it_learns_eight_clips_by_heart():
    net, targets = AudioNet(num_classes=4).train(), torch.arange(8) % 4
    x = torch.randn(8, 2000)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(20):
        optimizer.zero_grad()
        F.cross_entropy(net(x)["logits"], targets).backward()
        optimizer.step()
    with torch.no_grad():
        assert torch.equal(net(x)["logits"].argmax(dim=1), targets)
