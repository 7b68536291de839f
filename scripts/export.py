"""Write a trained model as one file for other programs: `python scripts/export.py checkpoint=outputs/train/<time>`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("export")
