"""What is written of a layer's gradients is true of them, and one that vanishes or explodes is named."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from esc50.watch.gradients import Gradients, measure

SETTINGS = {"every_n_steps": 1, "layers": None, "vanish_below": 1e-8, "explode_above": 1e3, "steps_in_a_row": 3}


def test_numbers_of_several_parameters_are_those_of_all_together():
    found = measure([torch.tensor([[3.0, -4.0], [0.0, 0.0]]), torch.tensor([12.0])])
    assert (found.min, found.mean, found.max, found.norm, found.nan_count) == (-4.0, pytest.approx(11 / 5), 12.0, 13.0, 0)
    assert sorted(found.sample.tolist()) == [-4, 0, 0, 3, 12]


def test_values_that_are_not_finite_are_counted():
    assert measure([torch.tensor([1.0, torch.nan]), torch.tensor([[torch.inf]])]).nan_count == 2


@pytest.fixture
def model() -> nn.Module:
    """y = head(body(x)), both without bias and nothing else between; the body's weights are ones, the head's (1, -1)."""
    model = nn.Module()
    model.body, model.act, model.head = nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 1, bias=False)
    nn.init.ones_(model.body.weight)
    model.head.weight.data = torch.tensor([[1.0, -1.0]])
    return model


def one_step(panel, trainer, model, x, *, factor=1.0):
    for parameter in model.parameters():
        parameter.grad = None
    (factor * model.head(model.act(model.body(x))).sum()).backward()
    panel.on_before_optimizer_step(trainer, None, None)
    trainer.global_step += 1


@pytest.fixture
def panel(trainer, model):
    panel = Gradients(**SETTINGS)
    panel.on_train_start(trainer, SimpleNamespace(model=model))
    return panel


def test_gradients_are_those_of_the_chain_rule(panel, trainer, model):
    one_step(panel, trainer, model, torch.tensor([[1.0, 2.0]]))
    # The body's output is (3, 3), so is the head's gradient; the body's is the head's weight times the input.
    assert trainer.scalars == {
        0: {
            "grad/body/min": -2.0,
            "grad/body/mean": 0.0,
            "grad/body/max": 2.0,
            "grad/head/min": 3.0,
            "grad/head/mean": 3.0,
            "grad/head/max": 3.0,
        }
    }
    assert sorted(trainer.histograms[0]["grad/body"]) == [-2, -1, 1, 2]


def test_a_frozen_layer_has_no_gradients_and_no_warning(panel, trainer, model, caplog):
    model.body.requires_grad_(False)
    for _ in range(5):
        one_step(panel, trainer, model, torch.tensor([[1.0, 2.0]]))
    assert trainer.scalars[4].keys() == {"grad/head/min", "grad/head/mean", "grad/head/max"}
    assert not caplog.records


def test_steps_between_are_not_shown(trainer, model):
    panel = Gradients(**{**SETTINGS, "every_n_steps": 3, "layers": ["h*"]})
    panel.on_train_start(trainer, SimpleNamespace(model=model))
    for _ in range(7):
        one_step(panel, trainer, model, torch.tensor([[1.0, 2.0]]))
    assert list(trainer.scalars) == [0, 3, 6]
    assert all(set(values) == {"grad/head/min", "grad/head/mean", "grad/head/max"} for values in trainer.scalars.values())


def test_a_layer_whose_gradients_vanish_is_named_once_it_is_certain(panel, trainer, model, caplog):
    model.head.weight.data *= 1e-9  # so that next to nothing comes back to the body
    for factor in (1.0, 1.0, 100.0):  # twice, but not three times
        one_step(panel, trainer, model, torch.tensor([[1.0, 2.0]]), factor=factor)
    assert not caplog.records
    for _ in range(6):
        one_step(panel, trainer, model, torch.tensor([[1.0, 2.0]]))
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(
        "layer body: gradients vanish, none was as large as 1e-08 in 3 shown steps in a row up to step 5;"
    )


def test_a_layer_whose_gradients_explode_is_named_once(panel, trainer, model, caplog):
    for _ in range(3):
        one_step(panel, trainer, model, torch.tensor([[1000.0, 0.0]]))
    assert [message.split(" at step")[0] for message in caplog.messages] == [
        f"layer {name}: gradients explode, their norm is 1.4e+03" for name in ("body", "head")
    ]


def test_gradients_that_are_not_finite_are_counted_and_their_layers_named_in_one_line(panel, trainer, model, caplog):
    for _ in range(2):
        one_step(panel, trainer, model, torch.tensor([[1.0, 2.0]]), factor=torch.nan)
    assert [message.split(";")[0] for message in caplog.messages] == ["layer body, head: gradients are not finite at step 0"]
    assert trainer.scalars == {step: {"grad/body/nan_count": 4, "grad/head/nan_count": 2} for step in (0, 1)}
    assert trainer.histograms == {}
