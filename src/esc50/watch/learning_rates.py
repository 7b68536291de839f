"""How fast does each part learn? The learning rate of every parameter group, by name, at every step."""

from typing import Any

import lightning as L


class LearningRates(L.Callback):
    """Writes `lr/head`, `lr/late` and `lr/early`; a group that is frozen is written with rate 0."""

    def on_train_batch_start(self, trainer: L.Trainer, pl_module: L.LightningModule, batch: Any, batch_idx: int) -> None:
        if trainer.logger is None or batch_idx % trainer.accumulate_grad_batches:
            return
        rates = {}
        for group in trainer.optimizers[0].param_groups:
            learns = any(parameter.requires_grad for parameter in group["params"])
            rates[f"lr/{group['name']}"] = group["lr"] if learns else 0.0
        trainer.logger.log_metrics(rates, step=trainer.global_step)
