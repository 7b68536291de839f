"""Check a data set, as table, file, page of pictures and in TensorBoard: `python scripts/inspect_data.py data=esc10`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("inspect")
