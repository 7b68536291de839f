"""Show a trained model as a page in the browser, on this machine: `esc50 serve checkpoint=outputs/train/<time>`."""

from omegaconf import DictConfig

from esc50.commands.entry import command, say
from esc50.config.door import check_command
from esc50.errors import require


@command(config="serve")
def main(cfg: DictConfig) -> None:
    check_command(cfg, "serve")
    require("esc50 serve", "gradio")
    from esc50.assembly.restore import load
    from esc50.inference.web import Limits, serve

    limits = Limits(
        max_megabytes=cfg.max_megabytes,
        max_seconds=cfg.max_seconds,
        min_probability=cfg.min_probability,
        max_entropy=cfg.max_entropy,
    )
    serve(
        load(str(cfg.checkpoint)),
        host=cfg.host,
        port=cfg.port,
        limits=limits,
        opened=lambda address: say(f"the page is at {address}, Ctrl-C ends it"),
    )
