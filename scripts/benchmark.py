"""Measure on this machine what the project claims about speed: `python scripts/benchmark.py suite=quick`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("benchmark")
