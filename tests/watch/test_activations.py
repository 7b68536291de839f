"""What is written of a layer's output is true of it, and a layer that died is named."""

import logging
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from esc50.errors import TrainingError
from esc50.watch import activations
from esc50.watch.activations import Activations, is_compiled, measure

SETTINGS = {"every_n_steps": 1, "layers": None, "dead_above": 0.8, "steps_in_a_row": 3}


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)


def test_numbers_of_a_small_output():
    found = measure(torch.tensor([[0.0, 1.0], [0.0, 3.0]]))
    assert (found.mean, found.zeros, found.nan_count) == (1.0, 0.5, 0)
    assert found.std == pytest.approx(np.std([0, 1, 0, 3]))
    assert found.silent.tolist() == [True, False]
    assert sorted(found.sample.tolist()) == [0, 0, 1, 3]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_an_output_measured_in_pieces_is_measured_as_a_whole(layout, offset, monkeypatch):
    monkeypatch.setattr(activations, "CACHED", 150)  # two clips and a half
    values = torch.relu(torch.randn(7, 3, 4, 5, generator=torch.Generator().manual_seed(0))) + offset
    values[:, 1] = 0
    values = values.contiguous(memory_format=layout)
    before = values.clone()
    found, exact = measure(values), values.double().numpy()
    assert (found.mean, found.std, found.zeros) == pytest.approx((exact.mean(), exact.std(), (exact == 0).mean()), rel=1e-5)
    assert found.silent.tolist() == [False, True, False]
    assert torch.equal(values, before)


def test_a_unit_is_silent_only_if_it_is_so_for_every_clip_and_place():
    values = torch.zeros(4, 3, 2, 2)
    values[3, 1, 1, 1] = -1e-30
    assert measure(values).silent.tolist() == [True, False, True]


def test_half_precision_is_measured_in_full():
    values = torch.full((64, 8, 32, 32), 1.5, dtype=torch.bfloat16)
    found = measure(values)
    assert (found.mean, found.std, found.zeros) == (1.5, 0.0, 0.0)


def test_values_that_are_not_finite_are_counted():
    values = torch.ones(2, 3, 4)
    values[0, 0, :2] = torch.tensor([torch.nan, -torch.inf])
    assert measure(values).nan_count == 2


class Net(nn.Module):
    """Two layers, a way to kill the first, and a head; the second lives whatever comes in."""

    def __init__(self, bias: float = 0.0):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 10), nn.ReLU())
        self.second = nn.Sequential(nn.Linear(10, 6), nn.Tanh(), nn.Linear(6, 5), nn.ReLU())
        self.head = nn.Linear(5, 3)
        nn.init.constant_(self.first[0].bias, bias)
        nn.init.constant_(self.second[2].bias, 5.0)

    def forward(self, x):
        return {"logits": self.head(self.second(self.first(x)))}


def one_step(panel, trainer, model, x, *, batch_idx=0):
    panel.on_train_batch_start(trainer, None, None, batch_idx)
    loss = model(x)["logits"].sum()
    panel.on_before_backward(trainer, None, loss)
    trainer.global_step += 1


def num_hooks(model) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


def test_each_layer_is_written_as_it_came_out_and_no_hook_stays(trainer):
    model, x, panel = Net(), torch.randn(16, 4), Activations(**SETTINGS)
    panel.on_train_start(trainer, SimpleNamespace(model=model))
    one_step(panel, trainer, model, x)
    first = model.first(x)
    inner = model.second[0](first)
    outputs = {"first": first, "second.0": inner, "second.3": model.second(first), "head": model(x)["logits"]}
    assert trainer.histograms[0].keys() == {f"activation/{name}" for name in outputs}
    assert len(trainer.scalars[0]) == 3 * len(outputs)
    for name, output in outputs.items():
        exact = output.detach().numpy()
        assert trainer.scalars[0][f"activation/{name}/mean"] == pytest.approx(exact.mean(), abs=1e-6)
        assert trainer.scalars[0][f"activation/{name}/std"] == pytest.approx(exact.std(), rel=1e-4)
        assert trainer.scalars[0][f"activation/{name}/zeros"] == pytest.approx((exact == 0).mean())
        np.testing.assert_allclose(sorted(trainer.histograms[0][f"activation/{name}"]), np.sort(exact.ravel()))
    assert num_hooks(model) == 0


def test_steps_between_have_no_hooks_and_a_step_of_several_batches_shows_the_first(trainer):
    model, panel = Net(), Activations(**{**SETTINGS, "every_n_steps": 2})
    trainer.accumulate_grad_batches = 2
    panel.on_train_start(trainer, SimpleNamespace(model=model))
    hooks = []
    for batch_idx in range(8):
        trainer.global_step = batch_idx // 2
        panel.on_train_batch_start(trainer, None, None, batch_idx)
        hooks.append(num_hooks(model))
        panel.on_before_backward(trainer, None, model(torch.full((2, 4), float(batch_idx)))["logits"].sum())
    assert hooks == [4, 0, 0, 0, 4, 0, 0, 0]
    assert list(trainer.scalars) == [0, 2]
    shown = model.first(torch.full((2, 4), 4.0)).mean().item()
    assert trainer.scalars[2]["activation/first/mean"] == pytest.approx(shown)


def test_what_is_written_into_in_place_is_seen_before(trainer):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
    panel = Activations(**{**SETTINGS, "layers": "0"})
    panel.on_train_start(trainer, SimpleNamespace(model=model))
    x = torch.randn(8, 4)
    panel.on_train_batch_start(trainer, None, None, 0)
    panel.on_before_backward(trainer, None, model(x).sum())
    assert trainer.scalars[0]["activation/0/mean"] == pytest.approx(model[0](x).mean().item(), abs=1e-6)


def test_a_relu_that_died_is_named_once(trainer, caplog):
    model, panel = Net(bias=-1000.0), Activations(**SETTINGS)
    panel.on_train_start(trainer, SimpleNamespace(model=model))
    for step in range(5):
        assert len(caplog.records) == (step >= SETTINGS["steps_in_a_row"])
        one_step(panel, trainer, model, torch.randn(16, 4))
    assert caplog.messages == [
        "layer first: 100% of 10 units are dead, they gave 0 for every clip of 3 shown steps in a row; try a lower optimizer.lr"
    ]
    assert trainer.scalars[0]["activation/first/zeros"] == 1.0


def test_units_that_are_silent_in_turn_are_not_dead(trainer, caplog):
    class Turns(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(10, 10), nn.Linear(10, 3)
            nn.init.eye_(self.body.weight), nn.init.zeros_(self.body.bias)

        def forward(self, x):
            return {"logits": self.head(self.body(x))}

    model, panel = Turns(), Activations(**SETTINGS)
    panel.on_train_start(trainer, SimpleNamespace(model=model))
    for step in range(9):
        x = torch.zeros(16, 10)
        x[:, step % 3] = 1.0  # nine of ten units are silent in every batch, seven always
        one_step(panel, trainer, model, x)
    assert trainer.scalars[0]["activation/body/zeros"] == pytest.approx(0.9)
    assert not caplog.records


def test_broken_layers_are_counted_and_named_in_one_line(trainer, caplog):
    model, panel = Net(), Activations(**SETTINGS)
    model.second[2].weight.data[0, 0] = torch.nan
    panel.on_train_start(trainer, SimpleNamespace(model=model))
    for _ in range(2):
        one_step(panel, trainer, model, torch.randn(16, 4))
    assert [message.split(":")[0] for message in caplog.messages] == ["layer second.3, head"]
    for step in (0, 1):
        assert trainer.scalars[step]["activation/second.3/nan_count"] == 16
        assert trainer.scalars[step]["activation/head/nan_count"] == 16 * 3
        assert trainer.histograms[step].keys() == {"activation/first", "activation/second.0"}


def test_a_compiled_model_is_left_alone_with_a_word(trainer, caplog):
    model = Net()
    assert not is_compiled(model)
    model.compile(backend="eager")
    assert is_compiled(model)
    panel = Activations(**SETTINGS)
    with caplog.at_level(logging.INFO):
        panel.on_train_start(trainer, SimpleNamespace(model=model))
    panel.on_train_batch_start(trainer, None, None, 0)
    assert num_hooks(model) == 0
    assert len(caplog.messages) == 1 and "trainer.compile=true" in caplog.messages[0]


def test_after_an_exception_no_hook_is_left(trainer):
    model, panel = Net(), Activations(**SETTINGS)
    panel.on_train_start(trainer, SimpleNamespace(model=model))
    panel.on_train_batch_start(trainer, None, None, 0)
    model(torch.randn(2, 4))
    panel.on_exception(trainer, None, KeyboardInterrupt())
    assert num_hooks(model) == 0
    assert trainer.scalars == {}


def test_recomputed_blocks_are_seen_once_and_as_without_recomputing(watched, events, tmp_path):
    plain = watched(tmp_path / "plain", ("activations",))
    again = watched(tmp_path / "again", ("activations",), "model.gradient_checkpointing=true")
    scalars = [
        {tag: points for tag, points in events(folder / "tensorboard").scalars.items() if tag.startswith("activation/")}
        for folder in (plain, again)
    ]
    assert len(scalars[0]["activation/blocks.0.1/mean"]) == 6
    assert scalars[0] == scalars[1]


def test_a_frozen_body_whose_embeddings_are_known_does_not_run(watched, events, tmp_path):
    folder = watched(tmp_path, ("activations", "gradients"), "trainer.freeze_epochs=1")
    scalars = events(folder / "tensorboard").scalars
    for kind in ("activation", "grad"):
        assert [step for step, _ in scalars[f"{kind}/head/mean"]] == list(range(6))
        assert [step for step, _ in scalars[f"{kind}/stem/mean"]] == [3, 4, 5]


def test_a_frozen_body_that_does_run_is_seen(watched, events, tmp_path):
    folder = watched(tmp_path, ("activations", "gradients"), "trainer.freeze_epochs=1", "trainer.cache_frozen=false")
    scalars = events(folder / "tensorboard").scalars
    assert [step for step, _ in scalars["activation/stem/mean"]] == list(range(6))
    assert [step for step, _ in scalars["grad/stem/mean"]] == [3, 4, 5]


def test_a_loss_that_is_not_finite_leaves_the_broken_layers_in_the_events(watched, events, tmp_path, caplog):
    with pytest.raises(TrainingError):
        watched(tmp_path, ("activations",), "optimizer.lr=1e30", "schedule=constant", "trainer.precision=float32")
    found = events(tmp_path / "tensorboard")
    assert [step for step, _ in found.scalars["activation/blocks.0.1/nan_count"]] == [1]
    assert [step for step, _ in found.scalars["activation/blocks.0.1/mean"]] == [0]
    named = [message for message in caplog.messages if message.startswith("layer ")]
    assert len(named) == 1 and named[0].startswith("layer blocks.0.1, ") and "not finite at step 1" in named[0]
