"""The size of a step is what arithmetic says."""

import pytest
import torch
from torch import nn

from esc50.watch.updates import Updates, total_norm, update_ratio


def test_a_norm_is_that_of_all_values_together():
    assert total_norm([torch.tensor([3.0]), torch.tensor([[0.0, 4.0]])]).item() == 5.0


def test_a_ratio_is_the_way_moved_over_the_size_before():
    before, after = [torch.tensor([3.0, 4.0]), torch.zeros(2)], [torch.tensor([3.0, 4.5]), torch.zeros(2)]
    assert update_ratio(after, before).item() == pytest.approx(0.1)
    assert update_ratio([torch.ones(2)], [torch.zeros(2)]).item() == 0.0


@pytest.fixture
def optimizer() -> torch.optim.Optimizer:
    """Gradient descent on weights (3, 4) with gradient (6, 8), on (1) with gradient (-2), and on a frozen one."""
    head, late, early = (nn.Parameter(torch.tensor(values)) for values in ([3.0, 4.0], [1.0], [7.0]))
    early.requires_grad_(False)
    head.grad, late.grad = torch.tensor([6.0, 8.0]), torch.tensor([-2.0])
    return torch.optim.SGD(
        [
            {"params": [head], "name": "head", "lr": 0.01},
            {"params": [late], "name": "late", "lr": 0.1},
            {"params": [early], "name": "early", "lr": 1.0},
        ]
    )


def test_a_step_of_gradient_descent_moves_by_its_rate_times_the_gradient(trainer, optimizer):
    panel = Updates(every_n_steps=1)
    trainer.global_step = 4
    panel.on_before_optimizer_step(trainer, None, optimizer)
    for parameter in (group["params"][0] for group in optimizer.param_groups[:2]):
        parameter.grad *= 0.5  # as clipping would
    optimizer.step()
    trainer.global_step = 5
    panel.on_train_batch_end(trainer, None, None, None, 0)
    panel.on_train_batch_end(trainer, None, None, None, 1)  # of a batch without a step
    assert trainer.scalars == {
        4: {
            "grad/norm": pytest.approx(104**0.5),
            "update/ratio_head": pytest.approx(0.01 * 5 / 5),
            "update/ratio_late": pytest.approx(0.1 * 1 / 1),
        }
    }


def test_steps_between_are_not_shown(trainer, optimizer):
    panel = Updates(every_n_steps=3)
    for trainer.global_step in range(7):
        panel.on_before_optimizer_step(trainer, None, optimizer)
        optimizer.step()
        panel.on_train_batch_end(trainer, None, None, None, 0)
    assert list(trainer.scalars) == [0, 3, 6]
