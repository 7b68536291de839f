"""A configuration as builtin types."""

from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf


def plain(cfg: DictConfig | ListConfig, *, resolve: bool = False) -> dict[str, Any]:
    """The keys of `cfg`, which is no list, with what lies below; `resolve` puts values in the place of interpolations."""
    values: Any = OmegaConf.to_container(cfg, resolve=resolve)
    return values
