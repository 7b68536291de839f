"""Tables for TensorBoard's TEXT page, which reads markdown."""

import re
from collections.abc import Iterable, Sequence


def text_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A markdown table; what stands in a cell is shown as it is, whatever signs it holds."""
    lines = [header, ["---"] * len(header), *([_plain(str(cell)) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(cell: str) -> str:
    one_line = " ".join(cell.split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_{}\[\]|])", r"\\\1", one_line)
