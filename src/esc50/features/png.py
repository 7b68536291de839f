"""One PNG a clip: exactly mel bands x frames, no axes, low frequencies at the bottom, parameters in its text chunks."""

import json
from functools import lru_cache
from pathlib import Path

import numpy as np

from esc50.errors import ConfigError
from esc50.files import write_atomically

# Small spectrogram images gain little from harder compression and cost several times the encoding time.
COMPRESS_LEVEL = 1


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

    with Image.open(path) as picture:
        picture.load()
        texts = {key.removeprefix("esc50."): json.loads(value) for key, value in picture.text.items()
                 if key.startswith("esc50.")}
        return np.asarray(picture)[::-1], texts


@lru_cache(maxsize=4)
def _palette(name: str) -> bytes:
    import matplotlib

    if name not in matplotlib.colormaps:
        raise ConfigError(f"features.colormap: matplotlib has no colour map {name!r}; viridis and magma are two it has")
    return (matplotlib.colormaps[name](np.arange(256), bytes=True)[:, :3]).tobytes()
