"""Put what systems score into one table, among the published results: `esc50 leaderboard runs=outputs/multirun`."""

from omegaconf import DictConfig

from esc50.commands.entry import command, say
from esc50.config.door import check_command, places
from esc50.config.names import run_folder, typed


@command(config="leaderboard")
def main(cfg: DictConfig) -> None:
    check_command(cfg, "leaderboard")
    runs = places(cfg, "runs")
    from esc50.results.tables import leaderboard

    say(leaderboard(runs, run_folder(), command=typed()))
