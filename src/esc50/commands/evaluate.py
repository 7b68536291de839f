"""Repeat a test from a checkpoint alone, with the same numbers: `esc50 evaluate checkpoint=outputs/train/<time>`."""

from omegaconf import DictConfig

from esc50.commands.entry import command
from esc50.config.door import check_command
from esc50.config.names import run_folder


@command(config="evaluate")
def main(cfg: DictConfig) -> float | None:
    check_command(cfg, "evaluate")
    from esc50.runs.test import evaluate

    return evaluate(str(cfg.checkpoint), run_folder(), root=cfg.data.root, num_shifts=cfg.shifts)
