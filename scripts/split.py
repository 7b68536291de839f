"""Write split.csv, which says what clip trains, validates and tests: `python scripts/split.py data=esc10 fold=2`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("split")
