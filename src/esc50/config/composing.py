"""From overrides to a configuration, outside of a command."""

from collections.abc import Sequence
from pathlib import Path

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from esc50.config.messages import in_our_words
from esc50.config.relations import nodes
from esc50.errors import ConfigError


def conf_folder() -> Path:
    """The folder of the configuration: inside the package where it is installed, at the top of a checkout."""
    package = Path(__file__).resolve().parents[1]
    return package / "conf" if (package / "conf").is_dir() else package.parents[1] / "conf"


def compose(
    overrides: Sequence[str], *, config: str = "config", config_dir: str | Path | None = None, single: bool = True
) -> DictConfig:
    """The configuration of one run. `config_dir`: a folder with options of one's own. Raises ConfigError for what Hydra cannot
    put together, and where a `single` run is wanted for a sweep."""
    searched = [] if config_dir is None else [f"hydra.searchpath=['file://{Path(config_dir).resolve()}']"]
    with in_our_words(overrides, lambda: known_keys(config)), initialize_config_dir(str(conf_folder()), version_base="1.3"):
        composed = hydra_compose(config, [*overrides, *searched], return_hydra_config=True)
    if single and composed.hydra.mode == RunMode.MULTIRUN:
        raise ConfigError("a sweep trains many runs; type `esc50 train` for it, or train one by one with fold= and seed=")
    with open_dict(composed):
        del composed["hydra"]
    return composed


def known_keys(config: str) -> list[str]:
    """Every key of the defaults that are rooted in `conf/<config>.yaml`."""
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        return [key for key, _ in nodes(OmegaConf.to_container(hydra_compose(config)))]
