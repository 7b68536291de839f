"""Write split.csv, which says what clip trains, validates and tests: `esc50 split data=esc10 fold=2`."""

import logging
from collections import Counter

from omegaconf import DictConfig

from esc50.commands.entry import command
from esc50.config.door import check
from esc50.config.names import run_folder

log = logging.getLogger(__name__)


@command(config="config")
def main(cfg: DictConfig) -> None:
    check(cfg)
    from esc50.assembly.data import build_clips, build_split
    from esc50.data.folds import leaking_sources, write_split

    clips = build_clips(cfg)
    division = build_split(cfg, clips)
    path = run_folder() / "split.csv"
    write_split(division, path)
    log.info("clips per fold %s", dict(sorted(Counter(clip.fold for clip in clips).items())))
    log.info(
        "split=%s fold=%d: %s",
        division.protocol,
        cfg.fold,
        ", ".join(f"{len(members)} {role}" for role, members in division.roles().items()),
    )
    leaks = leaking_sources(clips)
    log.info("sources in two folds: %s", ", ".join(leaks) if leaks else "none")
    log.info("written to %s", path)
