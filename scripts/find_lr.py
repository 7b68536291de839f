"""Find a learning rate by a range test: `python scripts/find_lr.py data=esc10 model=melcnn`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("find-lr")
