"""What broke is named: the step, the clips, and the first place that is not a finite number."""

import logging

import lightning as L
import pytest
import torch
from torch import nn

from esc50.errors import DataError, TrainingError
from esc50.runs import train as run
from esc50.training.nonfinite import first_bad_weight, where_it_broke


class Overflows(nn.Module):
    """The second layer makes infinities of numbers above one."""

    def forward(self, x):
        return torch.where(x > 1, torch.inf, x)


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), Overflows(), nn.Linear(2, 2))


def test_the_first_layer_that_is_not_finite_is_named_and_nothing_changes():
    model = net().train()
    with torch.no_grad():
        model[0].weight.copy_(torch.eye(2))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    x = torch.tensor([[9.0, 0.0], [0.0, 9.0], [0.0, 0.0]])
    assert where_it_broke(model, x) == "the first layer that is not finite is 2 (Overflows)"
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


def test_the_input_comes_before_the_weights_and_these_before_the_layers():
    model, x = net().train(), torch.zeros(3, 2)
    assert "the loss itself" in where_it_broke(model, x)
    with torch.no_grad():
        model[3].bias[0] = torch.nan
    assert first_bad_weight(model, with_buffers=True) == "3.bias"
    assert where_it_broke(model, x) == "the weights 3.bias are not finite since an earlier step"
    assert where_it_broke(model, torch.full((3, 2), torch.nan)) == "its input is not finite already"


@pytest.fixture
def config(compose, tiny):
    return lambda *overrides: compose(*tiny, "watch=none", *overrides)


def test_a_broken_step_is_named_with_its_clips_and_the_last_good_epoch_is_kept(config, tmp_path, monkeypatch):
    from esc50.models.melcnn import MelCNN

    forward, calls = MelCNN.forward, []

    def breaks_later(self, x):
        calls.append(self.training)
        if self.training and sum(calls) > 4:  # the second step of the second epoch: three steps an epoch
            x = self.stem[0](x) * torch.inf
            return {"logits": self.head(self.blocks(self.stem[1](x)).mean(dim=(2, 3)))}
        return forward(self, x)

    monkeypatch.setattr(MelCNN, "forward", breaks_later)
    with pytest.raises(TrainingError) as error:
        run.train(config("trainer.max_epochs=3", "trainer.precision=float32"), tmp_path)
    message = str(error.value)
    assert "epoch 2: the loss is nan at step 4: the first layer that is not finite is stem.1 (BatchNorm2d)" in message
    assert message.count(".wav") == 6
    assert "The epoch before is in checkpoints/last.ckpt" in message
    kept = torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)
    assert kept["epoch"] == 0
    assert all(value.isfinite().all() for value in kept["state_dict"].values())


class Breaks(L.Callback):
    """Leaves one weight without a value after the only step of an epoch."""

    def on_train_batch_end(self, trainer, pl_module, *rest):
        with torch.no_grad():
            pl_module.model.head[1].bias[0] = torch.nan


@pytest.mark.parametrize("protocol", ["holdout", "official"])
def test_weights_that_broke_in_the_last_step_never_reach_a_checkpoint(protocol, config, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "build_watch", lambda cfg: [Breaks()])
    with pytest.raises(TrainingError, match=r"epoch 1: the weights head.1.bias are not finite after step 0. No epoch was"):
        run.train(config(f"split={protocol}", "loader.batch_size=64", "trainer.precision=float32"), tmp_path)
    assert not list(tmp_path.rglob("*.ckpt"))


def test_debugging_learns_a_few_batches_by_heart_and_says_so(config, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    run.train(config("trainer=debug", "trainer.accelerator=cpu", "trainer.max_epochs=30"), tmp_path)
    assert any(
        message.startswith("trained on 12 clips only (trainer.overfit_batches=2), of which 100 % were right")
        for message in caplog.messages
    )


def test_debugging_looks_at_every_clip_first(config, tmp_path, sounds):
    import shutil

    root = shutil.copytree(sounds, tmp_path / "sounds")
    (root / "hum" / "hum3-A.wav").write_bytes(b"<html>404</html>")
    with pytest.raises(DataError, match="clips unusable"):
        run.train(config("trainer=debug", f"data.root={root}"), tmp_path / "run")


def test_debugging_names_the_operation_whose_gradient_is_not_a_number(config, tmp_path, monkeypatch):
    from esc50.models.melcnn import MelCNN

    forward = MelCNN.forward

    def root_of_nothing(self, x):
        found = forward(self, x)
        return found | {"logits": found["logits"] + torch.sqrt(found["logits"] * 0)}

    monkeypatch.setattr(MelCNN, "forward", root_of_nothing)
    with (
        pytest.warns(UserWarning, match="root_of_nothing"),
        pytest.raises(TrainingError, match=r"Function 'MulBackward0' returned nan values .* at step 0"),
    ):
        run.train(config("trainer=debug", "trainer.accelerator=cpu"), tmp_path)
