"""The task that Lightning trains: augment, model, loss, metrics."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from esc50.augment.draws import Draws, seed_of
from esc50.batches import batches_of
from esc50.errors import TrainingError
from esc50.features.front_end import FrontEnd
from esc50.models.network import Listening
from esc50.results.metrics import scores
from esc50.results.predictions import softmax
from esc50.training.embeddings import Embeddings, embed_all
from esc50.training.nonfinite import first_bad_weight, where_it_broke
from esc50.training.optimizers import set_body_frozen
from esc50.training.precision import in_float32
from esc50.training.profile import profiler_of


class Classifier(Listening, L.LightningModule):
    """A model with its front end, augmentations and way of learning.

    `augment` has up to three slots, each a mapping of names to modules: `waveform` and `spectrogram` take `(x, draws)`,
    `mix` takes `(x, target, draws)` and gives label probabilities too. `optimizer` makes an optimiser for the model,
    `schedule` gives the factor of the learning rate for a progress within 0..1. Every draw, dropout's too, is a function
    of (seed, epoch, batch), so a resumed run equals an uninterrupted one.
    """

    def __init__(
        self,
        model: nn.Module,
        front_end: FrontEnd,
        *,
        num_classes: int,
        seed: int,
        augment: Mapping[str, Mapping[str, nn.Module]] | None = None,
        optimizer: Callable[[nn.Module], Optimizer] | None = None,
        schedule: Callable[..., float] | None = None,
        freeze_epochs: int = 0,
        label_smoothing: float = 0.0,
        channels_last: bool = True,
        cache_frozen: bool = True,
    ):
        super().__init__()
        self.model, self.front_end = model, front_end
        slots = augment or {}
        self.augment = nn.ModuleDict({slot: nn.ModuleDict(slots.get(slot) or {}) for slot in ("waveform", "spectrogram", "mix")})
        self.num_classes, self.seed = num_classes, seed
        self.freeze_epochs, self.label_smoothing = freeze_epochs, label_smoothing
        self._optimizer, self._schedule = optimizer, schedule
        self.channels_last = channels_last
        if self.channels_last:
            self.model.to(memory_format=torch.channels_last)
        self._cache_frozen = cache_frozen
        self.num_shifts = 1  # circular shifts in time over which an evaluation averages (test-time augmentation)
        self._known: dict[str, Embeddings] = {}
        self._outputs: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []

    # ------------------------------------------------------------------ forward

    def augmented(self, batch: Mapping[str, Tensor], draws: Draws) -> tuple[Tensor, Tensor]:
        """What the model sees in training, and the label probabilities `[batch, classes]`."""
        x = self.front_end.decode(batch["input"])
        for module in self.augmentations("waveform"):
            x = module(x, draws)
        x = self.front_end.spectrogram(x)
        for module in self.augmentations("spectrogram"):
            x = module(x, draws)
        x, target = self.front_end.normalize(x), batch["target"]
        for module in self.augmentations("mix"):
            return module(x, target, draws, num_classes=self.num_classes)
        return x, F.one_hot(target, self.num_classes).float()

    def augmentations(self, slot: str) -> list[nn.Module]:
        """The modules of one slot of `augment`."""
        modules = self.augment[slot]
        assert isinstance(modules, nn.ModuleDict)
        return list(modules.values())

    # ------------------------------------------------------------------ training

    def on_train_start(self) -> None:
        """Set the rates by the schedule: those that a checkpoint brings along belong to the run's length of then."""
        scheduler = self.lr_schedulers()
        assert isinstance(scheduler, LambdaLR)
        groups = scheduler.optimizer.param_groups
        for group, lr, factor in zip(groups, scheduler.base_lrs, scheduler.lr_lambdas, strict=True):
            group["lr"] = lr * factor(scheduler.last_epoch)

    def on_train_epoch_start(self) -> None:
        """Freeze or unfreeze by epoch; also right after a resume. What a frozen body makes of a clip is computed once."""
        set_body_frozen(self.model, self.body_frozen)
        if not self.body_frozen:
            self.model.train()
            self._known = {}
        elif self.reuses_embeddings and not self._known:
            self._embed_known_clips()

    @property
    def reuses_embeddings(self) -> bool:
        """While the body is frozen and nothing random touches its input, a clip's embedding never changes."""
        return self._cache_frozen and not any(self.augmentations(slot) for slot in self.augment)

    def _embed_known_clips(self) -> None:
        contexts = {"train": self.trainer.precision_plugin.forward_context, "val": lambda: in_float32(self.device.type)}
        loaders = {"train": self.trainer.train_dataloader, "val": self.trainer.val_dataloaders}
        for role, loader in loaders.items():
            if loader:
                batch_size = loader.batch_size or loader.batch_sampler.batch_size
                self._known[role] = embed_all(
                    lambda stored: self(stored)["embedding"],
                    loader.dataset,
                    device=self.device,
                    batch_size=batch_size,
                    context=contexts[role],
                )

    @property
    def body_frozen(self) -> bool:
        return self.current_epoch < self.freeze_epochs

    def training_step(self, batch: dict[str, Tensor], batch_idx: int) -> Tensor:
        key = {"seed": self.seed, "epoch": self.current_epoch, "batch": batch_idx}
        rank, world = self.trainer.global_rank, self.trainer.world_size
        torch.manual_seed(seed_of(*key.values(), "dropout", rank))
        if "train" in self._known:
            target_probs = F.one_hot(batch["target"], self.num_classes).float()
            net, x = self.model.get_submodule("head"), self._known["train"].of(batch["index"])
            logits = net(x).float()
        else:
            with profiler_of(self.trainer).profile("augmentation"), torch.no_grad():
                x, target_probs = self.augmented(batch, Draws(**key, rank=rank, world=world))
            net, x = self.model, self.laid_out(x)
            logits = net(x)["logits"].float()
        loss = F.cross_entropy(logits, target_probs, label_smoothing=self.label_smoothing)
        if not torch.isfinite(loss):
            clips = ", ".join(batches_of(self.trainer).clips[index].filename for index in batch["index"].tolist())
            self._stop(f"the loss is {loss.item()} at step {self.global_step}: {where_it_broke(net, x)}; the clips are {clips}")
        size = len(logits)
        self.log("loss/train_step", loss, on_step=True, on_epoch=False, batch_size=size)
        self.log("loss/train", loss, on_step=False, on_epoch=True, prog_bar=True, batch_size=size, sync_dist=world > 1)
        hits = (logits.argmax(dim=1) == batch["target"]).float().mean()
        self.log("accuracy/train", hits, on_step=False, on_epoch=True, batch_size=size, sync_dist=world > 1)
        return loss

    def backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        try:
            super().backward(loss, *args, **kwargs)
        except RuntimeError as error:
            if "returned nan values" not in str(error):  # what anomaly detection raises
                raise
            self._stop(f"{str(error).rstrip('.')} at step {self.global_step}, in the gradient of the operation shown above")

    def on_train_epoch_end(self) -> None:
        """Before a checkpoint is written: one with broken weights would take the place of the last good one."""
        self._check_weights()

    def _check_weights(self) -> None:
        if (name := first_bad_weight(self.model, with_buffers=True)) is not None:
            self._stop(f"the weights {name} are not finite after step {self.global_step - 1}")

    def _stop(self, what: str) -> NoReturn:
        kept = "the epoch before is in checkpoints/last.ckpt" if self.current_epoch else "no epoch was finished before"
        raise TrainingError(
            f"epoch {self.current_epoch + 1}: {what}. {kept.capitalize()}; try a lower optimizer.lr or"
            " trainer.gradient_clip=1, and trainer=debug to see which operation it was"
        )

    def make_optimizer(self) -> Optimizer:
        """A new optimiser for the model, with its parameter groups."""
        assert self._optimizer is not None
        return self._optimizer(self.model)

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        optimizer, schedule = self.make_optimizer(), self._schedule
        assert schedule is not None
        total = max(1, int(self.trainer.estimated_stepping_batches))
        scheduler = LambdaLR(optimizer, lambda step: schedule(min(1.0, step / total)))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    # ------------------------------------------------------------------ evaluation

    def validation_step(self, batch: dict[str, Tensor], batch_idx: int) -> None:
        self._evaluate(batch, known=self._known.get("val"))

    def test_step(self, batch: dict[str, Tensor], batch_idx: int) -> None:
        self._evaluate(batch)

    def _evaluate(self, batch: dict[str, Tensor], *, known: Embeddings | None = None) -> None:
        """Always in float32, whatever the precision of training: a score must not depend on the machine's habits."""
        with in_float32(self.device.type):
            if known:
                embedding = known.of(batch["index"])
                logits = self.model.get_submodule("head")(embedding)
            else:
                found = self(batch["input"])
                embedding = found.get("embedding", found["logits"][:, :0])
                logits = self._averaged(found["logits"], batch["input"])
        self._outputs.append((batch["index"].cpu(), batch["target"].cpu(), logits.cpu(), embedding.float().cpu()))

    def _averaged(self, logits: Tensor, stored: Tensor) -> Tensor:
        """The logits of `stored`, or those of the mean probabilities where several shifts in time are averaged."""
        probs = [logits.softmax(dim=1)]
        for number in range(1, self.num_shifts):
            shifted = stored.roll(number * stored.shape[-1] // self.num_shifts, dims=-1)
            probs.append(self(shifted)["logits"].softmax(dim=1))
        return logits if len(probs) == 1 else torch.stack(probs).mean(dim=0).clamp_min(torch.finfo(torch.float32).tiny).log()

    def on_validation_epoch_start(self) -> None:
        self._check_weights()
        self._outputs = []

    def on_test_epoch_start(self) -> None:
        self._outputs = []

    def on_validation_epoch_end(self) -> None:
        _, targets, probs = self.evaluated()
        for name, value in scores(probs, targets).items():
            # Callbacks choose by plain names; TensorBoard groups by what stands before the slash.
            self.log(f"val_{name}", value, logger=False, prog_bar=name == "accuracy")
            self.log(f"{name}/val", value)

    def evaluated(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the last evaluation, clip by clip: data set index `[clips]`, target `[clips]`, probabilities `[clips,
        classes]`."""
        index, targets, logits, _ = self._evaluation()
        return index, targets, softmax(logits)

    def embeddings(self) -> np.ndarray:
        """Of the last evaluation: `[clips, features]`, without features where the model gives no embedding."""
        return self._evaluation()[3]

    def _evaluation(self) -> tuple[np.ndarray, ...]:
        return tuple(torch.cat(parts).numpy() for parts in zip(*self._outputs, strict=True))
