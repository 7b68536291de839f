"""Where a trained model looks in any recording, as pictures."""

import difflib
import logging
from pathlib import Path

import lightning as L
import numpy as np
import torch

from esc50.data import audio
from esc50.errors import ConfigError, DataError
from esc50.explain.cam import check_layer, grad_cam, model_input
from esc50.explain.map_picture import ExplainedClip, draw_maps
from esc50.features.recipe import SHORT
from esc50.files import write_atomically
from esc50.results.predictions import softmax
from esc50.testing import restore_task
from esc50.training.checkpoints import find_checkpoint, load_checkpoint
from esc50.training.precision import available, in_float32
from esc50.training.quiet import quieten
from esc50.training.task import Classifier

log = logging.getLogger(__name__)


def explain(checkpoint: str | Path, source: str | Path, folder: Path, *, class_name: str | None = None,
            layer: str | None = None) -> list[str]:
    """Draw into `folder` the map of every recording that `source`, a file or a folder, means: `<stem>.png`, below a folder
    in its subfolders.

    `class_name`: the class whose map is drawn, None for the predicted one; `layer` as in `grad_cam`. Returns one line for
    each recording that could not be read. Raises ConfigError for an unknown class or layer, DataError for a bad checkpoint
    or where there is nothing to read.
    """
    quieten()
    recordings = pictures_of(Path(source))
    stored = load_checkpoint(find_checkpoint(checkpoint))
    names = stored["esc50"]["class_names"]
    if class_name is not None and class_name not in names:
        near = difflib.get_close_matches(class_name, names, n=1)
        raise ConfigError(f"class={class_name}: {f'did you mean {near[0]}? ' if near else ''}the model knows"
                          f" {', '.join(names)}")
    task = restore_task(stored).eval()
    accelerator = available(stored["esc50"]["config"]["trainer"]["accelerator"])
    task.to(L.Fabric(accelerator=accelerator, devices=1).device)
    recipe = task.front_end.recipe
    if layer is not None:
        check_layer(task.model, model_input(task, np.zeros((1, *recipe.stored_shape), recipe.stored_dtype)), layer)
    problems = []
    for path, picture in recordings.items():
        try:
            clip = explained(task, path, names, class_name=class_name, layer=layer)
        except DataError as error:
            problems.append(str(error))
            continue
        with write_atomically(folder / picture) as temporary:
            draw_maps([clip], recipe).savefig(temporary, format="png")
        seconds = audio.seconds_of(path)
        cut = f" (the first {recipe.seconds:g} of {seconds:.1f} s)" if seconds > (1 + SHORT) * recipe.seconds else ""
        log.info("%s%s: %s, probability %.3f, map in %s", path, cut, clip.explained, clip.prob, folder / picture)
    return problems


def explained(task: Classifier, path: Path, names: list[str], *, class_name: str | None, layer: str | None) -> ExplainedClip:
    """A recording with the map of the class `class_name`, or of the predicted one. Raises DataError as `audio.read`."""
    stored = task.front_end.recipe.compute(path)
    x = model_input(task, stored[None])
    with torch.no_grad(), in_float32(task.device.type):
        probs = softmax(task.model(x)["logits"].cpu().numpy())[0]
    target = int(probs.argmax()) if class_name is None else names.index(class_name)
    return ExplainedClip(name=path.name, stored=stored, map=grad_cam(task.model, x, [target], layer=layer)[0],
                         explained=names[target], prob=float(probs[target]))


def pictures_of(source: Path) -> dict[Path, Path]:
    """The recordings that `source` means, each with the picture's place below the run folder: the file itself, or all
    visible audio files of a folder. Raises DataError where there are none."""
    if source.is_file():
        return {source: Path(f"{source.stem}.png")}
    suffixes = audio.readable_suffixes() | audio.OTHER_AUDIO_SUFFIXES  # of the latter it is said that they cannot be read
    paths = [path for path in sorted(source.rglob("*")) if path.suffix.lower() in suffixes and path.is_file()
             and not any(part.startswith((".", "__MACOSX")) for part in path.relative_to(source).parts)]
    if not paths:
        raise DataError(f"no audio files in {source}; they end in {', '.join(sorted(audio.readable_suffixes()))}")
    places: dict[Path, Path] = {}
    taken: set[Path] = set()
    for path in paths:
        place = path.relative_to(source).with_suffix(".png")
        if place in taken:  # dog.wav and dog.mp3
            place = place.with_name(f"{path.name}.png")
        taken.add(place)
        places[path] = place
    return places
