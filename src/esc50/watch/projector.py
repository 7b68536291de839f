"""Files for TensorBoard's projector: vectors, what is known of each, a small picture of each.

SummaryWriter.add_embedding makes a new folder a step and forgets what another writer entered in the folder's config, so the
test would take the validation away.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from esc50.files import write_atomically

if TYPE_CHECKING:
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

CONFIG = "projector_config.pbtxt"
LARGEST = 8192  # pixels on a side of the picture that holds all sprites, TensorBoard's limit


def write_projection(
    folder: str | Path,
    name: str,
    vectors: np.ndarray,
    rows: Sequence[Sequence[str]],
    *,
    columns: Sequence[str],
    sprites: np.ndarray,
) -> None:
    """Write one projection into the folder of the events and enter it in the config, in place of an older one of that name.

    `name`: as TensorBoard shows it, also the folder of its files; `vectors`: `[points, features]` float32; `rows`: one a
    point, values of two or more `columns`; `sprites`: `[points, size, size, 3]` uint8.
    """
    assert len(vectors) == len(rows) == len(sprites) > 0 and len(columns) > 1
    place = Path(folder) / name
    lines = ("\t".join(f"{value:.9g}" for value in vector) for vector in vectors.tolist())
    _write(place / "tensors.tsv", lines)
    _write(place / "metadata.tsv", ("\t".join(" ".join(text.split()) for text in row) for row in (columns, *rows)))
    with write_atomically(place / "sprite.png") as temporary:
        from PIL import Image

        Image.fromarray(sprite_sheet(sprites)).save(temporary, format="PNG")
    _enter(Path(folder) / CONFIG, name, size=sprites.shape[1])


def sprite_sheet(sprites: np.ndarray) -> np.ndarray:
    """All sprites row by row in one square picture, uint8 `[side, side, 3]`; the places left over are black."""
    size, across = sprites.shape[1], math.ceil(math.sqrt(len(sprites)))
    assert across * size <= LARGEST
    whole = np.zeros((across**2, size, size, 3), dtype=np.uint8)
    whole[: len(sprites)] = sprites
    return whole.reshape(across, across, size, size, 3).swapaxes(1, 2).reshape(across * size, across * size, 3)


def read_config(path: str | Path) -> "ProjectorConfig":
    """The config of the projector; an empty one where there is no file."""
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

    path = Path(path)
    return text_format.Parse(path.read_text(encoding="utf-8") if path.is_file() else "", ProjectorConfig())


def _enter(path: Path, name: str, *, size: int) -> None:
    from google.protobuf import text_format

    config = read_config(path)
    others = [entry for entry in config.embeddings if entry.tensor_name != name]
    del config.embeddings[:]
    config.embeddings.extend(others)
    entry = config.embeddings.add(tensor_name=name, tensor_path=f"{name}/tensors.tsv", metadata_path=f"{name}/metadata.tsv")
    entry.sprite.image_path = f"{name}/sprite.png"
    entry.sprite.single_image_dim.extend((size, size))
    _write(path, text_format.MessageToString(config).splitlines())


def _write(path: Path, lines: Iterable[str]) -> None:
    with write_atomically(path) as temporary, temporary.open("w", newline="\n", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
