"""Every group's settings are those of its optimiser."""

from types import SimpleNamespace

import pytest
import torch

from esc50.watch.learning_rates import LearningRates, group_settings


def groups(optimizer: type, **settings) -> list[dict]:
    parts = [
        {"params": [torch.nn.Parameter(torch.ones(2))], "name": name, "lr": lr} for name, lr in (("head", 0.1), ("early", 0.001))
    ]
    return optimizer(parts, **settings).param_groups


def test_settings_of_sgd():
    head, early = groups(torch.optim.SGD, momentum=0.8, weight_decay=0.05)
    assert group_settings(head) == {"lr/head": 0.1, "momentum/head": 0.8, "weight_decay/head": 0.05}
    assert group_settings(early) == {"lr/early": 0.001, "momentum/early": 0.8, "weight_decay/early": 0.05}


def test_the_momentum_of_adam_is_its_beta1():
    head, _ = groups(torch.optim.AdamW, betas=(0.7, 0.99), weight_decay=0.2)
    assert group_settings(head) == {"lr/head": 0.1, "momentum/head": 0.7, "weight_decay/head": 0.2}


def test_an_optimizer_without_momentum_and_decay_has_no_tags_of_them():
    head, _ = groups(torch.optim.Rprop)
    assert group_settings(head) == {"lr/head": 0.1}


def test_a_frozen_group_has_rate_0():
    _, early = groups(torch.optim.SGD)
    early["params"][0].requires_grad_(False)
    assert group_settings(early)["lr/early"] == 0.0


def test_every_step_is_written_once_also_where_a_step_takes_several_batches(trainer):
    parts = groups(torch.optim.SGD)
    trainer.optimizers, trainer.accumulate_grad_batches = [SimpleNamespace(param_groups=parts)], 2
    panel = LearningRates()
    for batch_idx in range(5):
        trainer.global_step = 10 + batch_idx // 2
        parts[0]["lr"] = 1 / trainer.global_step
        panel.on_train_batch_start(trainer, None, None, batch_idx)
    assert {step: values["lr/head"] for step, values in trainer.scalars.items()} == pytest.approx(
        {10: 1 / 10, 11: 1 / 11, 12: 1 / 12}
    )


def test_without_a_logger_nothing_is_asked(trainer):
    trainer.logger = None
    LearningRates().on_train_batch_start(trainer, None, None, 0)
    assert trainer.scalars == {}
