"""One PNG a clip: exactly mel bands x frames, no axes, low frequencies at the bottom, parameters in its text chunks."""

import json
import os
import struct
import zlib
from functools import lru_cache
from io import BytesIO
from pathlib import Path

import numpy as np

from esc50.errors import ConfigError
from esc50.files import write_atomically

SIGNATURE = b"\x89PNG\r\n\x1a\n"
END = b"\0\0\0\0IEND\xaeB`\x82"  # the last chunk of every PNG
GREY, PALETTE = 0, 3  # the format's colour types
SUB = 1  # the format's filter that keeps each pixel's difference to its left neighbour


def write_png(path: Path, image: np.ndarray, *, parameters: dict, identity: dict, colormap: str | None = None) -> None:
    """Write uint8 `[mel, frames]` (low frequencies first). With a colour map the grey levels stay as palette indices, so
    the picture is for looking at and its values are still exact."""
    colours = [_chunk(b"PLTE", _palette(colormap))] if colormap else []
    texts = [
        _chunk(b"tEXt", f"esc50.{name}\0{json.dumps(value, sort_keys=True)}".encode("latin-1"))
        for name, value in (("parameters", parameters), ("source", identity))
    ]
    height, width = image.shape
    header = struct.pack(">IIBBBBB", width, height, 8, PALETTE if colormap else GREY, 0, 0, 0)
    content = [SIGNATURE, _chunk(b"IHDR", header), *colours, *texts, _chunk(b"IDAT", _compressed(image[::-1])), END]
    with write_atomically(path) as temporary:
        temporary.write_bytes(b"".join(content))


def _compressed(rows: np.ndarray) -> bytes:
    """Pixel rows from the top. One filter for all rows and runs of equal bytes only: spectrograms gain nothing from trying
    every filter and longer matches, as PIL does, which takes several times as long."""
    filtered = np.empty((rows.shape[0], rows.shape[1] + 1), dtype=np.uint8)
    filtered[:, 0], filtered[:, 1] = SUB, rows[:, 0]
    np.subtract(rows[:, 1:], rows[:, :-1], out=filtered[:, 2:])
    compressor = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_RLE)
    return compressor.compress(filtered.data) + compressor.flush()


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def read_png(path: Path) -> tuple[np.ndarray, dict]:
    """Return uint8 `[mel, frames]` (low frequencies first) and the texts of the PNG, parsed: `parameters`, `source`.

    Raises OSError or ValueError where the file is not such a PNG.
    """
    from PIL import Image
    from PIL.PngImagePlugin import PngImageFile

    file = BytesIO(path.read_bytes())
    try:
        Image.open(file, formats=("PNG",)).verify()  # the checksums, which loading passes over
    except SyntaxError as error:
        raise ValueError(str(error)) from None
    with Image.open(file, formats=("PNG",)) as picture:
        assert isinstance(picture, PngImageFile)
        texts = {key.removeprefix("esc50."): json.loads(value) for key, value in picture.text.items() if key.startswith("esc50.")}
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
