"""Bring the feature store of the chosen data up to date, on all cores: `esc50 precompute data=esc10`."""

import logging

from omegaconf import DictConfig

from esc50.commands.entry import command
from esc50.config.door import check

log = logging.getLogger(__name__)


@command(config="config")
def main(cfg: DictConfig) -> None:
    check(cfg)
    from esc50.assembly.data import build_clips, build_recipe
    from esc50.features.store import build_store, store_folder

    clips, recipe = build_clips(cfg), build_recipe(cfg)
    packed, _ = build_store(clips, root=cfg.paths.store, recipe=recipe, colormap=cfg.features.get("colormap"))
    log.info(
        "%d clips ready in %s, %.0f MB packed", len(clips), store_folder(cfg.paths.store, clips, recipe), packed.nbytes / 1e6
    )
