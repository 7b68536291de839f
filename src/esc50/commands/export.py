"""Write a trained model as one file for other programs, waveform in: `esc50 export checkpoint=outputs/train/<time>`."""

from omegaconf import DictConfig

from esc50.commands.entry import command
from esc50.config.door import check_command
from esc50.config.names import run_folder
from esc50.errors import require


@command(config="export")
def main(cfg: DictConfig) -> None:
    check_command(cfg, "export")
    if cfg.format == "onnx":
        require("format=onnx", "onnx", "onnxruntime", "onnxscript")
    from esc50.runs.export import export

    source = None if cfg.input is None else str(cfg.input)
    export(str(cfg.checkpoint), run_folder(), format=cfg.format, quantize=cfg.quantize, source=source, root=cfg.data.root)
