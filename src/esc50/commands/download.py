"""Fetch or generate the chosen data set and check it against its table: `esc50 download data=esc50`."""

import logging

from omegaconf import DictConfig

from esc50.commands.entry import command
from esc50.config.door import check

log = logging.getLogger(__name__)


@command(config="config")
def main(cfg: DictConfig) -> None:
    check(cfg)
    from esc50.assembly.data import build_clips
    from esc50.data.clip import class_names

    clips = build_clips(cfg)
    log.info("%d clips of %d classes at %s", len(clips), len(class_names(clips)), cfg.data.root)
