"""What is the network made of? Its graph, traced once with one clip."""

import logging
import warnings
from typing import cast

import lightning as L
import torch
from torch import Tensor, nn

from esc50.training.task import Classifier
from esc50.watch.events import writer_of

log = logging.getLogger(__name__)


class _Logits(nn.Module):
    """The tracer takes tensors only; models return dicts."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x)["logits"]


class ModelGraph(L.Callback):
    """Writes the graph at the start of training. A network that cannot be traced costs a warning, not the run."""

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if trainer.logger is None:
            return
        task, loader = cast(Classifier, pl_module), trainer.train_dataloader
        assert loader is not None
        sample = loader.dataset[0]["input"].unsqueeze(0).to(pl_module.device)
        training = pl_module.training
        pl_module.eval()
        try:
            with warnings.catch_warnings(), torch.no_grad(), torch.autocast(pl_module.device.type, enabled=False):
                warnings.simplefilter("ignore")  # the tracer remarks on every shape that it takes for a constant
                writer_of(trainer).add_graph(_Logits(task.model), task.front_end(sample))
        except Exception as error:  # whatever a network does that tracing does not know
            log.warning("no graph of the network in TensorBoard: %s", str(error).splitlines()[0])
        finally:
            pl_module.train(training)
