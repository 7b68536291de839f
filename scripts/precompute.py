"""Bring the feature store of the chosen data up to date, on all cores: `python scripts/precompute.py data=esc10`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("precompute")
