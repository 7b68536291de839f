"""Files appear whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def write_atomically(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; when the block ends well it takes that place, else it is removed.

    The name is unique to this call, so several processes may write one file at once: the last to finish wins whole.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}-{secrets.token_hex(4)}.part{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
