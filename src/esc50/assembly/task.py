"""From a configuration to the model that learns, its optimiser and what watches it."""

from collections.abc import Callable

from omegaconf import DictConfig
from torch import nn
from torch.optim import Optimizer

from esc50.assembly.data import component, instantiate
from esc50.assembly.network import build_front_end, build_model, check_size
from esc50.config.plain import plain
from esc50.training.optimizers import parameter_groups
from esc50.training.task import Classifier


def build_optimizer(cfg: DictConfig) -> Callable[[nn.Module], Optimizer]:
    """Makes an optimiser for a model, with its parameter groups."""
    ratio = plain(cfg.optimizer.lr_ratio)

    def optimizer(model: nn.Module) -> Optimizer:
        groups = parameter_groups(model, lr=cfg.optimizer.lr, lr_ratio=ratio)
        return component(cfg, "optimizer", _partial_=True)(groups)

    return optimizer


def build_task(cfg: DictConfig, *, num_classes: int) -> Classifier:
    """The model with front end, augmentation, optimiser and schedule, untrained."""
    front_end = build_front_end(cfg)
    augment = {
        slot: {name: instantiate(part) for name, part in (parts or {}).items() if part is not None}
        for slot, parts in cfg.augment.items()
    }
    model = build_model(cfg, front_end, num_classes=num_classes)
    check_size(model, front_end)
    return Classifier(
        model,
        front_end,
        num_classes=num_classes,
        seed=cfg.seed,
        augment=augment,
        optimizer=build_optimizer(cfg),
        schedule=component(cfg, "schedule", _partial_=True),
        freeze_epochs=cfg.trainer.freeze_epochs,
        label_smoothing=cfg.trainer.label_smoothing,
        channels_last=cfg.trainer.channels_last,
        cache_frozen=cfg.trainer.cache_frozen,
    )


def build_watch(cfg: DictConfig) -> list:
    """The callbacks of the chosen panels."""
    return [instantiate(panel) for panel in (cfg.watch or {}).values() if panel is not None]
