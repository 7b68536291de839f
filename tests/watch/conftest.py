"""What tests of panels need: a trainer that writes down what it is shown, and runs with chosen panels."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest


@pytest.fixture
def trainer() -> SimpleNamespace:
    """Stands for Lightning's trainer at step `global_step`; `scalars` and `histograms` hold what was written, by step."""
    scalars: dict[int, dict[str, float]] = {}
    histograms: dict[int, dict[str, list[float]]] = {}

    def log_metrics(values, step):
        assert not scalars.get(step, {}).keys() & values.keys(), "a tag has one value a step"
        scalars.setdefault(step, {}).update(values)

    def add_histogram(tag, values, step, bins):
        histograms.setdefault(step, {})[tag] = values.tolist()

    logger = SimpleNamespace(log_metrics=log_metrics, experiment=SimpleNamespace(add_histogram=add_histogram))
    return SimpleNamespace(
        logger=logger,
        global_step=0,
        is_global_zero=True,
        accumulate_grad_batches=1,
        world_size=1,
        scalars=scalars,
        histograms=histograms,
    )


@pytest.fixture(scope="session")
def watched(compose, tiny) -> Callable:
    """Train in `folder` with these panels and no others, at every step; `overrides` as on a command line."""
    from esc50.runs import train as run

    def train(folder: Path, panels: tuple[str, ...], *overrides: str) -> Path:
        chosen = [f"+watch/panels@watch.{panel}={panel}" for panel in panels]
        cfg = compose(*tiny, "watch=none", *chosen, *overrides)
        for panel in cfg.watch.values():
            if "every_n_steps" in panel:
                panel.every_n_steps = 1
        run.train(cfg, folder)
        return folder

    return train
