"""How fast does each part learn? Learning rate, momentum and weight decay of every parameter group at every step."""

from collections.abc import Mapping
from typing import Any

import lightning as L


class LearningRates(L.Callback):
    """Writes `lr/head`, `lr/late` and `lr/early`, and likewise `momentum/...` and `weight_decay/...`; a group that is frozen
    is written with rate 0."""

    def on_train_batch_start(self, trainer: L.Trainer, pl_module: L.LightningModule, batch: Any, batch_idx: int) -> None:
        if trainer.logger is None or batch_idx % trainer.accumulate_grad_batches:
            return
        values: dict[str, float] = {}
        for group in trainer.optimizers[0].param_groups:
            values |= group_settings(group)
        trainer.logger.log_metrics(values, step=trainer.global_step)


def group_settings(group: Mapping[str, Any]) -> dict[str, float]:
    """What an optimiser's parameter group is set to, by tag. Momentum is SGD's, or Adam's beta1, which has its place; a
    setting that the optimiser does not know has no tag."""
    name = group["name"]
    learns = any(parameter.requires_grad for parameter in group["params"])
    values = {f"lr/{name}": float(group["lr"]) if learns else 0.0}
    if "momentum" in group or "betas" in group:
        values[f"momentum/{name}"] = float(group["momentum"] if "momentum" in group else group["betas"][0])
    if "weight_decay" in group:
        values[f"weight_decay/{name}"] = float(group["weight_decay"])
    return values
