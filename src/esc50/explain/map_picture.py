"""Where a model looks, as a picture: the spectrogram, and beside it the same with the map over it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from esc50.drawing import draw_spectrogram, mark_hertz, new_figure
from esc50.features.logmel import to_decibels
from esc50.features.picture import Picture, picture_of
from esc50.features.recipe import Recipe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches: of the figure, of a row with its title, and around the panels.
WIDTH, ROW, ABOVE, BELOW = 11.5, 2.4, 0.3, 0.5
LEFT, SCALES, GAP, WAVEFORM_GAP = 0.75, 1.5, 0.2, 0.7
RANGE_DB = 80.0  # shown below the loudest point of a clip
OPACITY = 0.75  # of the map where it is strongest
NUM_COLUMNS = 1000  # a waveform is drawn as so many strokes from lowest to highest sample
MAP_COLORS = "YlOrRd"
LONGEST = 24  # letters of a name in a title


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplainedClip:
    """One clip and the map of one class.

    `stored`: what the recipe keeps of the clip, uint8 `[mel, frames]` or int16 `[time]`; `map`: `[mel, frames]` or, of a
    model that reads samples, `[time]`, within 0..1; `explained`: the class of the map, `prob` its probability; `truth`:
    the clip's own class, None where nobody knows.
    """

    name: str
    stored: np.ndarray
    map: np.ndarray
    explained: str
    prob: float
    truth: str | None = None

    @property
    def title(self) -> str:
        truth = "" if self.truth is None else f"is {_short(self.truth)}, "
        verdict = "" if self.truth in (None, self.explained) else " (wrong)"
        empty = "" if self.map.any() else "; nothing speaks for it"
        return f"{_short(self.name)}: {truth}map of {_short(self.explained)}, probability {self.prob:.2f}{verdict}{empty}"


def draw_maps(clips: Sequence[ExplainedClip], recipe: Recipe) -> "Figure":
    """A row a clip: the spectrogram (seconds, Hz) on the left; on the right the same in grey with the map over it, or of a
    model that reads samples the waveform, coloured by the map, which is then a curve over the spectrogram too."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable

    reads_samples = clips[0].map.ndim == 1
    height = ROW * len(clips) + BELOW
    figure = new_figure(WIDTH, height)
    figure.set_layout_engine("none")  # all sizes are known; to search for them would double the time
    inner = WIDTH - LEFT - SCALES
    gap = WAVEFORM_GAP if reads_samples else GAP
    panels = figure.subplots(
        len(clips),
        2,
        squeeze=False,
        gridspec_kw={
            "left": LEFT / WIDTH,
            "right": 1 - SCALES / WIDTH,
            "bottom": BELOW / height,
            "top": 1 - ABOVE / height,
            "wspace": 2 * gap / (inner - gap),
            "hspace": ABOVE / (ROW - ABOVE),
        },
    )
    for row, (clip, (left, right)) in enumerate(zip(clips, panels, strict=True)):
        picture = _below_loudest(stored_picture(clip.stored, recipe))
        image = draw_spectrogram(left, picture, floor=-RANGE_DB, ceiling=0.0)
        left.set_ylabel("frequency in Hz", fontsize=9)
        if reads_samples:
            _draw_curve(left, clip.map, picture.seconds)
            _draw_waveform(right, clip.stored, clip.map, picture.seconds)
        else:
            _draw_overlay(right, picture, clip.map)
        left.set_title(clip.title, loc="left", fontsize=9, fontweight="bold", parse_math=False)
        for axes in (left, right):
            axes.tick_params(labelsize=8, labelbottom=row == len(clips) - 1)
    for axes in panels[-1]:
        axes.set_xlabel("time in seconds", fontsize=9)
    scales = {"dB from the loudest": image, "speaks for the class (1: most)": ScalarMappable(cmap=colormaps[MAP_COLORS])}
    for number, (label, colors) in enumerate(scales.items()):
        bar = figure.add_axes(
            ((WIDTH - SCALES + 0.15 + number * SCALES / 2) / WIDTH, BELOW / height, 0.12 / WIDTH, (ROW - ABOVE) / height)
        )
        figure.colorbar(colors, cax=bar)
        bar.tick_params(labelsize=8)
        bar.set_ylabel(label, fontsize=9)
    return figure


def stored_picture(stored: np.ndarray, recipe: Recipe) -> Picture:
    """The picture of what the recipe keeps of a clip, without reading the recording again."""
    if not recipe.keeps_images:
        return picture_of(stored.astype(np.float32) / 32768, recipe)
    mel = recipe.log_mel
    return Picture(
        decibels=to_decibels(stored, mel),
        seconds=recipe.seconds,
        frequencies=mel.mel_frequencies(),
        floor=mel.db_min,
        ceiling=mel.db_max,
    )


def _short(text: str) -> str:
    """At most LONGEST letters, without the middle: a title has one line."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[: half - 1]}…{text[-half:]}"


def _below_loudest(picture: Picture) -> Picture:
    """So that one scale of colours serves the pictures of loud and of quiet clips; silence stays black."""
    loudest = float(picture.decibels.max())
    reference = loudest if loudest > picture.floor else picture.floor + RANGE_DB
    return replace(picture, decibels=picture.decibels - reference, floor=-RANGE_DB, ceiling=0.0)


def _draw_overlay(axes: "Axes", picture: Picture, values: np.ndarray) -> None:
    extent = (0, picture.seconds, -0.5, len(picture.decibels) - 0.5)
    how: dict[str, Any] = {"origin": "lower", "aspect": "auto", "interpolation": "nearest", "extent": extent}
    axes.imshow(picture.decibels, cmap="gray", vmin=-RANGE_DB, vmax=0.0, **how)
    axes.imshow(values, cmap=MAP_COLORS, vmin=0.0, vmax=1.0, alpha=OPACITY * values, **how)
    mark_hertz(axes, picture.frequencies, labelled=False)


def _draw_curve(axes: "Axes", values: np.ndarray, seconds: float) -> None:
    """The map over time as a line from the bottom (0) to the top (1)."""
    low, high = axes.get_ylim()
    every = max(1, len(values) // NUM_COLUMNS)
    times, heights = _times(len(values), seconds)[::every], low + (high - low) * values[::every]
    axes.plot(times, heights, color="white", linewidth=2.5)
    axes.plot(times, heights, color="tab:red", linewidth=1.2)
    axes.set_ylim(low, high)
    axes.set_xlim(0, seconds)


def _draw_waveform(axes: "Axes", stored: np.ndarray, values: np.ndarray, seconds: float) -> None:
    """Samples as an outline of lowest and highest values, behind them a band of the map's colour."""
    samples = stored.astype(np.float32) / 32768
    count = min(NUM_COLUMNS, len(samples))
    parts = np.array_split(samples, count)
    highest = max(1e-3, 1.05 * float(np.abs(samples).max()))
    axes.imshow(
        values[None, :: max(1, len(values) // NUM_COLUMNS)],
        cmap=MAP_COLORS,
        vmin=0.0,
        vmax=1.0,
        aspect="auto",
        interpolation="nearest",
        extent=(0, seconds, -highest, highest),
    )
    axes.fill_between(
        _times(count, seconds), [part.min() for part in parts], [part.max() for part in parts], color="0.15", linewidth=0.5
    )
    axes.set_xlim(0, seconds)
    axes.set_ylim(-highest, highest)
    axes.set_ylabel("sample value (full scale is 1)", fontsize=9)


def _times(count: int, seconds: float) -> np.ndarray:
    return (np.arange(count) + 0.5) * seconds / count
