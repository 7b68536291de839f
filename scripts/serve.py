"""Show a trained model as a page in the browser, on this machine: `python scripts/serve.py checkpoint=outputs/train/<time>`."""

from esc50.commands.cli import run

if __name__ == "__main__":
    run("serve")
