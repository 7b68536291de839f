"""Measure on this machine what the project claims about speed: `esc50 benchmark suite=quick`.

Leaves benchmark.md and benchmark.json; needs librosa (extra: benchmark).
"""

from omegaconf import DictConfig

from esc50.commands.entry import command, say
from esc50.config.door import check
from esc50.config.names import chosen, run_folder, typed
from esc50.errors import require


@command(config="benchmark")
def main(cfg: DictConfig) -> None:
    check(cfg)
    require("esc50 benchmark", "librosa")  # the book's ways go through it
    import hydra

    from esc50.benchmarks import suite

    say(
        suite.run(
            cfg, run_folder(), make_cfg=lambda overrides: hydra.compose("config", overrides), data=chosen("data"), command=typed()
        )
    )
