"""Draw where a trained model looks in recordings: `python scripts/explain.py checkpoint=outputs/train/<time> input=dog.wav`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("explain")
