"""Where a trained model looks in any recording, as pictures."""

import difflib
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from esc50.errors import ConfigError, DataError
from esc50.explain.cam import check_layer, grad_cam, model_input
from esc50.explain.map_picture import ExplainedClip, draw_maps
from esc50.files import write_atomically
from esc50.inference.predictor import Predictor, load
from esc50.inference.recordings import STDIN, Cut, Piece, pieces_of_file, recordings_of

log = logging.getLogger(__name__)


def explain(checkpoint: str | Path, source: str, folder: Path, *, class_name: str | None = None, layer: str | None = None,
            window: float | None = None, hop: float | None = None, num_rows: int = 6) -> list[str]:
    """Draw into `folder` the map of every recording that `source` means, a file, a folder or `-` for stdin: `<stem>.png`,
    below a folder in its subfolders.

    `class_name`: the class whose map is drawn, None for the predicted one; `layer` as in `grad_cam`. A long recording has a
    row for each window (`window` and `hop` as in `Predictor.predict`), no more than `num_rows`: those where the class is most
    probable. Returns one line for each recording that could not be read. Raises ConfigError for an unknown class or layer,
    DataError for a bad checkpoint or where there is nothing to read.
    """
    model = load(checkpoint)
    if class_name is not None and class_name not in model.class_names:
        near = difflib.get_close_matches(class_name, model.class_names, n=1)
        raise ConfigError(f"class={class_name}: {f'did you mean {near[0]}? ' if near else ''}the model knows"
                          f" {', '.join(model.class_names)}")
    cut = Cut(window=window, hop=hop)
    cut.check(model.recipe)
    if layer is not None:
        nothing = np.zeros((1, *model.recipe.stored_shape), model.recipe.stored_dtype)
        check_layer(model.task.model, model_input(model.task, nothing), layer)
    problems = []
    with recordings_of(source) as names:
        pictures = pictures_of(names, Path(source))
        for path, name in names.items():
            try:
                clips = explained(model, pieces_of_file(path, model.recipe, cut), Path(name).name, class_name=class_name,
                                  layer=layer, num_rows=num_rows)
            except DataError as error:
                problems.append(str(error).replace(str(path), name))
                continue
            picture = folder / pictures[path]
            with write_atomically(picture) as temporary:
                draw_maps(clips, model.recipe).savefig(temporary, format="png")
            best = max(clips, key=lambda clip: clip.prob)
            log.info("%s: %s, probability %.3f, map in %s", name, best.explained, best.prob, picture)
    return problems


def explained(model: Predictor, pieces: Iterable[Piece], name: str, *, class_name: str | None, layer: str | None,
              num_rows: int) -> list[ExplainedClip]:
    """The windows of a recording with the map of the class `class_name`, or of the one predicted for the whole: the `num_rows`
    where it is most probable, in order of time. Raises DataError as `audio.read`."""
    chosen: list[tuple[Piece, np.ndarray]] = [(piece, model.probabilities(piece.stored[None])[0]) for piece in pieces]
    mean = np.mean([probs for _, probs in chosen], axis=0)
    target = int(mean.argmax()) if class_name is None else model.class_names.index(class_name)
    is_long = len(chosen) > 1
    chosen = sorted(chosen, key=lambda one: -one[1][target])[:num_rows]
    clips = []
    for piece, probs in sorted(chosen, key=lambda one: one[0].start):
        seconds = f", {piece.start:.1f}-{piece.end:.1f} s" if is_long else ""
        values = grad_cam(model.task.model, model_input(model.task, piece.stored[None]), [target], layer=layer)[0]
        clips.append(ExplainedClip(name=f"{name}{seconds}", stored=piece.stored, map=values,
                                   explained=model.class_names[target], prob=float(probs[target])))
    return clips


def pictures_of(paths: Sequence[Path] | dict[Path, str], source: Path) -> dict[Path, Path]:
    """The picture's place below the run folder for each recording; no two share one."""
    places: dict[Path, Path] = {}
    taken: set[Path] = set()
    for path in paths:
        place = (path.relative_to(source) if source.is_dir() and str(source) != STDIN else Path(path.name)).with_suffix(".png")
        if place in taken:  # dog.wav and dog.mp3
            place = place.with_name(f"{path.name}.png")
        taken.add(place)
        places[path] = place
    return places
