"""Where a trained model looks in any recording, as pictures."""

import difflib
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from esc50.errors import ConfigError, DataError
from esc50.explain.cam import check_layer, model_input
from esc50.explain.map_picture import draw_maps
from esc50.files import write_atomically
from esc50.inference.maps import explained
from esc50.inference.predictor import Predictor
from esc50.inference.recordings import STDIN, Cut, pieces_of_file, recordings_of

log = logging.getLogger(__name__)


def explain(
    model: Predictor,
    source: str,
    folder: Path,
    *,
    class_name: str | None = None,
    layer: str | None = None,
    window: float | None = None,
    hop: float | None = None,
    num_rows: int = 6,
) -> list[str]:
    """Draw into `folder` the map of every recording that `source` means, a file, a folder or `-` for stdin: `<stem>.png`,
    below a folder in its subfolders.

    `class_name`: the class whose map is drawn, None for the predicted one; `layer` as in `grad_cam`. A long recording has a
    row for each window (`window` and `hop` as in `Predictor.predict`), no more than `num_rows`: the most probable ones.
    Returns one line for each recording that could not be read. Raises ConfigError for an unknown class or layer, DataError
    where there is nothing to read.
    """
    if class_name is not None and class_name not in model.class_names:
        near = difflib.get_close_matches(class_name, model.class_names, n=1)
        raise ConfigError(
            f"class={class_name}: {f'did you mean {near[0]}? ' if near else ''}the model knows {', '.join(model.class_names)}"
        )
    cut = Cut(window=window, hop=hop)
    cut.check(model.recipe)
    if layer is not None:
        nothing = np.zeros((1, *model.recipe.stored_shape), model.recipe.stored_dtype)
        check_layer(model.network.model, model_input(model.network, nothing), layer)
    problems = []
    with recordings_of(source) as names:
        pictures = pictures_of(names, Path(source))
        for path, name in names.items():
            try:
                clips = explained(
                    model,
                    pieces_of_file(path, model.recipe, cut),
                    Path(name).name,
                    class_name=class_name,
                    layer=layer,
                    num_rows=num_rows,
                )
            except DataError as error:
                problems.append(str(error).replace(str(path), name))
                continue
            picture = folder / pictures[path]
            with write_atomically(picture) as temporary:
                draw_maps(clips, model.recipe).savefig(temporary, format="png")
            labels = ", ".join(f"{clip.explained} (probability {clip.prob:.3f})" for clip in clips)
            log.info("%s: %s, map in %s", name, labels, picture)
    return problems


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
