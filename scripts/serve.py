"""Show a trained model as a page in the browser, on this machine: drop a sound, see what it is."""

import hydra
from omegaconf import DictConfig

from esc50.config import check_script, readable_errors


@hydra.main(version_base="1.3", config_path="../conf", config_name="serve")
def main(cfg: DictConfig) -> None:
    with readable_errors():
        check_script(cfg, "serve")
        from esc50.inference import predictor, web

        limits = web.Limits(max_megabytes=cfg.max_megabytes, max_seconds=cfg.max_seconds, min_probability=cfg.min_probability,
                            max_entropy=cfg.max_entropy)
        web.serve(predictor.load(str(cfg.checkpoint)), host=cfg.host, port=cfg.port, limits=limits,
                  opened=lambda address: print(f"the page is at {address}, Ctrl-C ends it", flush=True))


if __name__ == "__main__":
    main()
