"""The figure that much of the literature reports: the best epoch on the test fold. Kept beside the honest one, never used."""

from typing import Any

import lightning as L
import torch

from esc50.batches import batches_of
from esc50.training.precision import in_float32


class OptimisticTest(L.Callback):
    """Scores the test clips after every epoch and remembers the best accuracy; nothing is chosen by it, and the training is
    the same with and without. TensorBoard shows it as `accuracy/test_optimistic`."""

    def __init__(self) -> None:
        self.accuracy: float | None = None
        self.epoch: int | None = None  # counted from 1

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        modes = {module: module.training for module in pl_module.modules()}
        pl_module.eval()
        hits = total = 0
        with torch.no_grad(), in_float32(pl_module.device.type):
            for batch in batches_of(trainer).in_order("test"):
                predicted = pl_module(batch["input"].to(pl_module.device))["logits"].argmax(dim=1).cpu()
                hits, total = hits + int((predicted == batch["target"]).sum()), total + len(predicted)
        for module, training in modes.items():
            module.training = training
        if self.accuracy is None or hits / total > self.accuracy:
            self.accuracy, self.epoch = hits / total, trainer.current_epoch + 1
        if trainer.logger is not None:
            trainer.logger.log_metrics({"accuracy/test_optimistic": hits / total}, step=max(0, trainer.global_step - 1))

    def state_dict(self) -> dict[str, Any]:
        return {"accuracy": self.accuracy, "epoch": self.epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.accuracy, self.epoch = state_dict["accuracy"], state_dict["epoch"]
