"""The checklist of a data set, as text, file and pictures."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

from omegaconf import DictConfig
from torch.utils.tensorboard import SummaryWriter

from esc50.build.data import build_clips, build_recipe, build_split
from esc50.data.checklist import inspect
from esc50.data.manifest import TABLE, Clip, read_table
from esc50.features.picture import Picture, picture_of
from esc50.files import write_atomically
from esc50.watch.data_page import draw_page, save_page, write_tensorboard

log = logging.getLogger(__name__)


def inspect_data(cfg: DictConfig, folder: Path, *, show: Callable[[str], None]) -> None:
    """Run the checklist; leaves checklist.json, data_page.png and a TensorBoard page. Raises DataError where clips cannot
    be used."""
    clips = _listed_clips(cfg)
    checklist = inspect(clips, split=build_split(cfg, clips), sample_rate=cfg.features.sample_rate)
    with write_atomically(folder / "checklist.json") as temporary:
        temporary.write_text(json.dumps(checklist.to_dict(), indent=2) + "\n", encoding="utf-8")
    figures = draw_page(checklist, clips, spectrogram=lambda clip: _spectrogram(cfg, clip))
    save_page(figures, folder / "data_page.png")
    with SummaryWriter(folder / "tensorboard") as writer:
        write_tensorboard(writer, figures, checklist, clips, sample_rate=cfg.features.sample_rate)
    show(checklist.to_text())
    log.info("written to %s: checklist.json, data_page.png, tensorboard", folder)
    checklist.refuse_unusable()


def _listed_clips(cfg: DictConfig) -> tuple[Clip, ...]:
    """The clips of a table as it stands, with or without audio; of other data sets all clips."""
    if (Path(cfg.data.root) / TABLE).is_file():
        return read_table(cfg.data.root, subset=cfg.data.get("subset"))
    return build_clips(cfg)


def _spectrogram(cfg: DictConfig, clip: Clip) -> Picture:
    recipe = build_recipe(cfg)
    return picture_of(recipe.read(clip.path), recipe)
