"""How much memory does training take? Of the device where there is one, of the process on a CPU."""

import logging

import lightning as L
import psutil
import torch

from esc50.watch.evaluation import last_step

log = logging.getLogger(__name__)

MB = 1e6


class Memory(L.Callback):
    """Writes once an epoch: `memory/process_mb` on a CPU; `memory/allocated_mb`, `memory/reserved_mb`, `memory/peak_mb`
    (the most since the epoch began) and `memory/gpu_utilization` (percent, where the driver tells) on a GPU."""

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if pl_module.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(pl_module.device)

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if trainer.logger is not None:
            trainer.logger.log_metrics(memory_in_use(pl_module.device), step=last_step(trainer))


def memory_in_use(device: torch.device) -> dict[str, float]:
    """Megabytes by tag."""
    if device.type != "cuda":
        return {"memory/process_mb": psutil.Process().memory_info().rss / MB}
    found = {
        "memory/allocated_mb": torch.cuda.memory_allocated(device) / MB,
        "memory/reserved_mb": torch.cuda.memory_reserved(device) / MB,
        "memory/peak_mb": torch.cuda.max_memory_allocated(device) / MB,
    }
    try:
        found["memory/gpu_utilization"] = float(torch.cuda.utilization(device))
    except (ModuleNotFoundError, RuntimeError) as error:  # needs nvidia-ml-py and a driver that answers
        log.debug("no utilization of the GPU: %s", error)
    return found
