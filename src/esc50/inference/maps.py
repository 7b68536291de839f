"""Where a model looks in the windows of a recording."""

import heapq
from collections.abc import Iterable, Iterator

from esc50.explain.cam import grad_cam, model_input
from esc50.explain.map_picture import ExplainedClip
from esc50.inference.predictor import Predictor
from esc50.inference.recordings import Piece


def explained(
    model: Predictor, pieces: Iterable[Piece], name: str, *, class_name: str | None, layer: str | None, num_rows: int
) -> list[ExplainedClip]:
    """The windows of a recording with the map of the class `class_name`, or each of the class predicted for it: the
    `num_rows` where that is most probable, in order of time. Raises DataError as `audio.read`."""
    num_windows = 0

    def windows() -> Iterator[tuple[float, int, Piece]]:
        nonlocal num_windows
        for piece in pieces:
            probs = model.probabilities(piece.stored[None])[0]
            target = int(probs.argmax()) if class_name is None else model.class_names.index(class_name)
            num_windows += 1
            yield float(probs[target]), target, piece

    clips = []
    most_telling = heapq.nlargest(num_rows, windows(), key=lambda window: window[0])  # hours of sound hold no more than these
    for prob, target, piece in sorted(most_telling, key=lambda window: window[2].start):
        place = f", {piece.start:.1f}-{piece.end:.1f} s" if num_windows > 1 else ""
        values = grad_cam(model.network.model, model_input(model.network, piece.stored[None]), [target], layer=layer)[0]
        clips.append(
            ExplainedClip(name=f"{name}{place}", stored=piece.stored, map=values, explained=model.class_names[target], prob=prob)
        )
    return clips
