"""Several spectrograms side by side in one picture, each with a title, all on one scale."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from esc50.drawing import draw_spectrogram, new_figure
from esc50.features.picture import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_COLUMNS = 4
RANGE_DB = 80.0  # shown below the loudest point of all panels
# Inches.
PANEL_WIDTH, PANEL_HEIGHT, GAP, TITLE = 2.9, 1.9, 0.15, 0.55
LEFT, RIGHT, TOP, BOTTOM = 0.8, 1.0, 0.4, 0.55
BAR, LEAST_WIDTH = 0.12, 7.5


def draw_grid(
    pictures: Sequence[Picture],
    titles: Sequence[str],
    *,
    title: str,
    scale: str,
    floor: float,
    ceiling: float,
    colors: Sequence[str] | None = None,
) -> "Figure":
    """One panel a picture, row by row, with black at `floor` and the lightest at `ceiling`.

    `titles`: what stands above each panel, up to three lines, in `colors` (default black); `scale`: what the colours mean,
    with its unit.
    """
    assert len(pictures) == len(titles) > 0
    num_columns = min(MAX_COLUMNS, len(pictures))
    num_rows = math.ceil(len(pictures) / num_columns)
    right = LEFT + num_columns * (PANEL_WIDTH + GAP)
    width = max(LEAST_WIDTH, right + RIGHT)
    height = TOP + num_rows * (PANEL_HEIGHT + TITLE) + BOTTOM
    figure = new_figure(width, height)
    figure.set_layout_engine("none")  # all sizes are known; to search for them would double the time
    for i, picture in enumerate(pictures):
        row, column = divmod(i, num_columns)
        top = TOP + TITLE + row * (PANEL_HEIGHT + TITLE)
        axes = figure.add_axes(
            (
                (LEFT + column * (PANEL_WIDTH + GAP)) / width,
                1 - (top + PANEL_HEIGHT) / height,
                PANEL_WIDTH / width,
                PANEL_HEIGHT / height,
            )
        )
        image = draw_spectrogram(axes, picture, floor=floor, ceiling=ceiling, labelled=column == 0)
        axes.set_title(titles[i], fontsize=8, loc="left", pad=3, parse_math=False, color=colors[i] if colors else "black")
        axes.tick_params(labelsize=8, labelbottom=i + num_columns >= len(pictures))
    bar = figure.add_axes((right / width, BOTTOM / height, BAR / width, PANEL_HEIGHT / height))
    figure.colorbar(image, cax=bar)
    bar.tick_params(labelsize=8)
    bar.set_ylabel(scale, fontsize=9)
    figure.text((LEFT + right) / 2 / width, 0.1 / height, "time in seconds", fontsize=10, ha="center")
    figure.text(
        0.1 / width, (BOTTOM + height - TOP - TITLE) / 2 / height, "frequency in Hz", fontsize=10, va="center", rotation=90
    )
    figure.text(0.1 / width, 1 - 0.28 / height, title, fontsize=12, fontweight="bold")
    return figure


def shared_range(pictures: Sequence[Picture]) -> tuple[float, float]:
    """`(floor, ceiling)` in dB: from the loudest point of all pictures down."""
    ceiling = max(float(picture.decibels.max()) for picture in pictures)
    return ceiling - RANGE_DB, ceiling
