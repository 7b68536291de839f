"""Average the probabilities of finished runs, fold by fold: `python scripts/ensemble.py runs=[outputs/a,outputs/b]`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("ensemble")
