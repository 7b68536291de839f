"""Put what systems score into one table, among the published results: `python scripts/leaderboard.py runs=outputs/multirun`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("leaderboard")
