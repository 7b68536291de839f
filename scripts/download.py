"""Fetch or generate the chosen data set and check it against its table: `python scripts/download.py data=esc50`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("download")
