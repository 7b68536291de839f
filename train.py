"""Train a model, test it and leave the record: `python train.py model=resnet50 augment=specaugment`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("train")
