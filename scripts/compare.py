"""Compare two systems on the same clips, with McNemar's test: `python scripts/compare.py a=outputs/a b=outputs/b`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("compare")
