"""Check a data set, as table, file, page of pictures and in TensorBoard: `esc50 inspect data=esc10`."""

import logging
from pathlib import Path

from omegaconf import DictConfig

from esc50.commands.entry import command, say
from esc50.config.door import check
from esc50.config.names import run_folder

log = logging.getLogger(__name__)


@command(config="config")
def main(cfg: DictConfig) -> None:
    check(cfg)
    from esc50.assembly.data import build_clips, build_recipe, build_split
    from esc50.data.checklist import inspect
    from esc50.data.tables import TABLE, read_table
    from esc50.features.picture import picture_of
    from esc50.watch.inspection import write_checklist

    # A table is taken as it stands, with or without audio.
    with_table = (Path(cfg.data.root) / TABLE).is_file()
    clips = read_table(cfg.data.root, subset=cfg.data.get("subset")) if with_table else build_clips(cfg)
    recipe, rate = build_recipe(cfg), cfg.features.sample_rate
    checklist = inspect(clips, split=build_split(cfg, clips), sample_rate=rate)
    write_checklist(
        checklist, clips, run_folder(), spectrogram=lambda clip: picture_of(recipe.read(clip.path), recipe), sample_rate=rate
    )
    say(checklist.to_text())
    log.info("written to %s: checklist.json, data_page.png, tensorboard", run_folder())
    checklist.refuse_unusable()
