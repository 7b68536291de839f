"""One PNG a clip: exactly mel bands x frames, no axes, low frequencies at the bottom, parameters in its text chunks."""

import json
import os
from functools import lru_cache
from io import BytesIO
from pathlib import Path

import numpy as np

from esc50.errors import ConfigError
from esc50.files import write_atomically

# Small spectrogram images gain little from harder compression and cost several times the encoding time.
COMPRESS_LEVEL = 1
END = b"\0\0\0\0IEND\xaeB`\x82"  # the last chunk of every PNG


def write_png(path: Path, image: np.ndarray, *, parameters: dict, identity: dict, colormap: str | None = None) -> None:
    """Write uint8 `[mel, frames]` (low frequencies first). With a colour map the grey levels stay as palette indices, so
    the picture is for looking at and its values are still exact."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    picture = Image.fromarray(np.ascontiguousarray(image[::-1]))
    if colormap:
        picture.putpalette(_palette(colormap))
    text = PngInfo()
    text.add_text("esc50.parameters", json.dumps(parameters, sort_keys=True))
    text.add_text("esc50.source", json.dumps(identity, sort_keys=True))
    with write_atomically(path) as temporary:
        picture.save(temporary, format="PNG", pnginfo=text, compress_level=COMPRESS_LEVEL)


def read_png(path: Path) -> tuple[np.ndarray, dict]:
    """Return uint8 `[mel, frames]` (low frequencies first) and the texts of the PNG, parsed: `parameters`, `source`.

    Raises OSError or ValueError where the file is not such a PNG.
    """
    from PIL import Image

    file = BytesIO(path.read_bytes())
    try:
        Image.open(file, formats=("PNG",)).verify()  # the checksums, which loading passes over
    except SyntaxError as error:
        raise ValueError(str(error)) from None
    with Image.open(file, formats=("PNG",)) as picture:
        texts = {key.removeprefix("esc50."): json.loads(value) for key, value in picture.text.items()
                 if key.startswith("esc50.")}
        return np.asarray(picture)[::-1], texts


def is_whole(path: Path) -> bool:
    """Whether the file is there and ends as a PNG does; one that was cut short does not."""
    try:
        with path.open("rb") as file:
            file.seek(-len(END), os.SEEK_END)
            return file.read() == END
    except OSError:  # not there, or shorter than the chunk
        return False


@lru_cache(maxsize=4)
def _palette(name: str) -> bytes:
    import matplotlib

    if name not in matplotlib.colormaps:
        raise ConfigError(f"features.colormap: matplotlib has no colour map {name!r}; viridis and magma are two it has")
    return (matplotlib.colormaps[name](np.arange(256), bytes=True)[:, :3]).tobytes()
