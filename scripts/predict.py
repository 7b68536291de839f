"""Label recordings: `python scripts/predict.py checkpoint=outputs/train/<time> input=dog.wav format=csv`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("predict")
