"""Labels for recordings, as text."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from esc50.errors import DataError
from esc50.inference.predictor import Predictor
from esc50.inference.recordings import recordings_of
from esc50.inference.rows import csv_header, csv_row, json_row, table, worth

log = logging.getLogger(__name__)

ROWS = {"csv": csv_row, "jsonl": json_row, "table": table}


def label(
    model: Predictor,
    source: str,
    write: Callable[[str], None],
    *,
    format: str,
    window: float | None = None,
    hop: float | None = None,
    min_probability: float | None = None,
    max_entropy: float | None = None,
    num_top: int,
    batch_size: int,
) -> int:
    """`write` the answer for every recording that `source` means: a file, a folder, or `-` for stdin.

    `format`: table, csv or jsonl. Recordings that cannot be read are logged, a line each; returns how many they were. Raises
    as `Predictor.predict`.
    """
    failed = 0
    with recordings_of(source) as names:
        answers = model.predict_files(
            names,
            window=window,
            hop=hop,
            min_probability=min_probability,
            max_entropy=max_entropy,
            num_top=num_top,
            batch_size=batch_size,
        )
        if format == "csv":
            write(csv_header())
        # A bar only where somebody watches, and there is more than one answer to wait for.
        with tqdm(total=len(names), desc="predict", unit="file", disable=True if len(names) == 1 else None) as bar:
            for path, found in answers:
                name = names[Path(path)]
                bar.update()
                with bar.external_write_mode():
                    if isinstance(found, DataError):
                        failed += 1
                        log.error("error: %s", str(found).replace(path, name))
                    else:
                        write(ROWS[format](replace(found, file=name)))
    if format == "table":
        write(worth(model.description))
    else:
        log.info("%s", worth(model.description))
    return failed
