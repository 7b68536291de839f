"""Write a trained model as one file for other programs, with the spectrogram inside: waveform in, probabilities out."""

import hydra
from omegaconf import DictConfig

from esc50.config import check_script, readable_errors, run_folder


@hydra.main(version_base="1.3", config_path="../conf", config_name="export")
def main(cfg: DictConfig) -> None:
    with readable_errors():
        check_script(cfg, "export")
        from esc50.stages import exporting

        source = None if cfg.input is None else str(cfg.input)
        exporting.export(str(cfg.checkpoint), run_folder(), format=cfg.format, quantize=cfg.quantize, source=source,
                         root=cfg.data.root)


if __name__ == "__main__":
    main()
