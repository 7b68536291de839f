"""Repeat a test from a checkpoint alone, with the same numbers: `python scripts/evaluate.py checkpoint=outputs/train/<time>`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("evaluate")
