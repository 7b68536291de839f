"""What comes before any network: fetch the data, divide it, precompute its features. Free of torch, for memory and speed."""

import logging
from collections import Counter
from pathlib import Path

from omegaconf import DictConfig

from esc50.build.data import build_clips, build_recipe, build_split
from esc50.data.folds import leaking_sources, write_split
from esc50.data.manifest import class_names
from esc50.features.store import build_store, store_folder

log = logging.getLogger(__name__)


def download(cfg: DictConfig) -> None:
    """Fetch or generate the data and say what is there."""
    clips = build_clips(cfg)
    log.info("%d clips of %d classes at %s", len(clips), len(class_names(clips)), cfg.data.root)


def split(cfg: DictConfig, folder: Path) -> None:
    """Write split.csv and say how many clips have which role."""
    clips = build_clips(cfg)
    division = build_split(cfg, clips)
    write_split(division, folder / "split.csv")
    log.info("clips per fold %s", dict(sorted(Counter(clip.fold for clip in clips).items())))
    log.info("split=%s fold=%d: %s", division.protocol, cfg.fold,
             ", ".join(f"{len(members)} {role}" for role, members in division.roles().items()))
    leaks = leaking_sources(clips)
    log.info("sources in two folds: %s", ", ".join(leaks) if leaks else "none")
    log.info("written to %s", folder / "split.csv")


def precompute(cfg: DictConfig) -> None:
    """Bring the store up to date."""
    clips, recipe = build_clips(cfg), build_recipe(cfg)
    packed, _ = build_store(clips, root=cfg.paths.store, recipe=recipe, colormap=cfg.features.get("colormap"))
    log.info("%d clips ready in %s, %.0f MB packed", len(clips), store_folder(cfg.paths.store, clips, recipe),
             packed.nbytes / 1e6)
