"""Show where the time of a training goes, as a flame graph: `python scripts/profile_run.py experiment=quickstart`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("profile")
