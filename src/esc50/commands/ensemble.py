"""Average the probabilities of finished runs, fold by fold: `esc50 ensemble runs=[outputs/a,outputs/b]`."""

from omegaconf import DictConfig

from esc50.commands.entry import command, say
from esc50.config.door import check_command, numbers, places
from esc50.config.names import run_folder


@command(config="ensemble")
def main(cfg: DictConfig) -> None:
    check_command(cfg, "ensemble")
    members = places(cfg, "runs")
    weights = numbers(cfg, "weights", count=len(members))
    from esc50.results.tables import ensemble

    say(ensemble(members, run_folder(), weights=weights))
