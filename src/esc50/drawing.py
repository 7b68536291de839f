"""How pictures are drawn: figures without a window, their pixels, and a spectrogram with seconds and Hz on its axes."""

from typing import TYPE_CHECKING, Literal

import numpy as np

from esc50.features.picture import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

DPI = 100
MAX_LETTERS = 44  # of a line that fits above a panel
TICKS_HZ = (50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000)


def new_figure(width: float, height: float) -> "Figure":
    """A white figure of so many inches, at DPI pixels an inch."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def canvas_of(figure: "Figure") -> "FigureCanvasAgg":
    """What a figure of `new_figure` is drawn on."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    assert isinstance(figure.canvas, FigureCanvasAgg)
    return figure.canvas


def pixels(figure: "Figure") -> np.ndarray:
    """The figure as uint8 `[height, width, 3]`."""
    canvas = canvas_of(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3]


def draw_spectrogram(axes: "Axes", picture: Picture, *, floor: float, ceiling: float, labelled: bool = True) -> "AxesImage":
    """Show the picture with black at `floor` dB; `labelled` writes the frequencies at the axis."""
    image = axes.imshow(
        picture.decibels,
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        cmap="magma",
        vmin=floor,
        vmax=ceiling,
        extent=(0, picture.seconds, -0.5, len(picture.decibels) - 0.5),
    )
    mark_hertz(axes, picture.frequencies, labelled=labelled)
    return image


def mark_hertz(axes: "Axes", centres: np.ndarray, *, labelled: bool) -> None:
    """Round frequencies on an axis of mel bands, at the place between two bands where each belongs."""
    within = [hertz for hertz in TICKS_HZ if centres[0] <= hertz <= centres[-1]]
    chosen: list[tuple[float, int]] = []
    for hertz in within:
        place = float(np.interp(hertz, centres, np.arange(len(centres))))
        if not chosen or place - chosen[-1][0] >= len(centres) / 9:  # the low ones are too close to each other to read
            chosen.append((place, hertz))
    axes.set_yticks([place for place, _ in chosen], [f"{hertz}" for _, hertz in chosen] if labelled else [])


def tidy(axes: "Axes", title: str, *, grid: Literal["both", "x", "y"] = "y") -> None:
    """A bold title on the left, no frame above and on the right, a pale grid along `grid`."""
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="0.9")
    axes.set_axisbelow(True)


def shortened(text: str, *, most: int = MAX_LETTERS, end: bool = False) -> str:
    """The start of a text that is too long for a panel, or its `end`, which is what tells files apart."""
    if len(text) <= most:
        return text
    return "…" + text[1 - most :] if end else text[: most - 1] + "…"
