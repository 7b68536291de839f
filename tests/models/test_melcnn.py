"""MelCNN: images of any size and number of channels."""

import pytest
import torch
import torch.nn.functional as F

from esc50.models.melcnn import MelCNN


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("in_channels", [1, 3])
@pytest.mark.parametrize("size", [(32, 32), (33, 47), (64, 500), (128, 431), (257, 32)])
def test_one_logit_a_class_for_any_size(size, in_channels):
    net = MelCNN(num_classes=7, in_channels=in_channels).eval()
    with torch.no_grad():
        out = net(torch.randn(2, in_channels, *size))
    assert out["logits"].shape == (2, 7)
    assert out["embedding"].shape == (2, 256)
    assert torch.isfinite(out["logits"]).all()


def test_channels_are_those_asked_for():
    net = MelCNN(num_classes=5, channels=(4, 6, 9))
    out = net(torch.randn(2, 1, 32, 40))
    assert out["embedding"].shape == (2, 9)
    assert net.head[-1].weight.shape == (5, 9)
    assert {parameter.shape[0] for parameter in net.parameters()} == {4, 6, 9, 5}


def test_every_parameter_learns():
    net = MelCNN(num_classes=5, channels=(4, 8, 8)).train()
    F.cross_entropy(net(torch.randn(4, 1, 32, 40))["logits"], torch.arange(4)).backward()
    assert [name for name, parameter in net.named_parameters() if not parameter.grad.any()] == []


def test_outputs_are_logits_not_log_probabilities():
    with torch.no_grad():
        logits = MelCNN(num_classes=10).eval()(torch.randn(4, 1, 64, 64))["logits"]
    assert ((logits.exp().sum(dim=1) - 1).abs() > 0.1).all()
    assert (logits > 0).any()


def test_a_short_event_counts_wherever_in_time_it_happens():
    """Time is pooled by mean and maximum, so moving an event by the product of strides changes nothing but the edges."""
    net = MelCNN(num_classes=3, channels=(4, 8, 8)).eval()  # strides 2 x 2 x 2
    early, late = torch.zeros(2, 1, 1, 32, 256)
    early[..., 64:80] = late[..., 128:144] = torch.randn(1, 1, 32, 16)
    with torch.no_grad():
        torch.testing.assert_close(net(early)["logits"], net(late)["logits"], atol=1e-6, rtol=1e-5)
        assert not torch.allclose(net(early)["logits"], net(torch.zeros_like(early))["logits"], atol=1e-4)


def test_dropout_is_for_training_only():
    net = MelCNN(num_classes=3, dropout=0.5)
    x = torch.randn(2, 1, 32, 32)
    with torch.no_grad():
        net.eval()
        assert torch.equal(net(x)["logits"], net(x)["logits"])
        net.train()
        assert not torch.equal(net(x)["logits"], net(x)["logits"])


def test_it_learns_eight_clips_by_heart():
    net, targets = MelCNN(num_classes=4).train(), torch.arange(8) % 4
    x = torch.randn(8, 1, 32, 32)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(20):
        optimizer.zero_grad()
        F.cross_entropy(net(x)["logits"], targets).backward()
        optimizer.step()
    with torch.no_grad():
        assert torch.equal(net(x)["logits"].argmax(dim=1), targets)
