"""Compare two systems on the same clips, with interval and McNemar's test: `esc50 compare a=outputs/a b=outputs/b`."""

from omegaconf import DictConfig

from esc50.commands.entry import command, say
from esc50.config.door import check_command, places
from esc50.config.names import run_folder


@command(config="compare")
def main(cfg: DictConfig) -> None:
    check_command(cfg, "compare")
    a, b = places(cfg, "a"), places(cfg, "b")
    from esc50.results.tables import compare

    say(compare(a, b, run_folder()))
