"""A page of pictures of a data set: class balance, lengths, one log-mel per class, and clips to listen to."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from esc50.data.audio import fit_length, read
from esc50.data.checklist import Checklist
from esc50.data.checklist_facts import Lengths
from esc50.data.clip import Clip
from esc50.drawing import draw_spectrogram, new_figure, pixels, tidy
from esc50.features.picture import Picture
from esc50.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch.utils.tensorboard import SummaryWriter

Spectrogram = Callable[[Clip], Picture]

WIDTH = 13.0  # inches, of every picture, so that they can be stacked
MAX_HEIGHT = 300.0  # inches; matplotlib draws no picture of 2^16 pixels and more
MAX_COLUMNS = 5
MAX_PANELS = 100  # classes with a log-mel and a sound; more would be neither readable nor quick
RANGE_DB = 80.0  # shown below the loudest point of all panels
MAX_SOUND_SECONDS = 10
GREY = "0.35"


def draw_page(checklist: Checklist, clips: Sequence[Clip], *, spectrogram: Spectrogram) -> dict[str, "Figure"]:
    """The pictures by name: `balance`, and where there is audio `lengths` and `spectrograms` (one usable clip a class).

    `spectrogram` is called once for each clip drawn; what it raises is passed on.
    """
    figures = {"balance": _draw_balance(checklist)}
    if checklist.lengths:
        figures["lengths"] = _draw_lengths(checklist.lengths)
    if chosen := examples(checklist, clips):
        figures["spectrograms"] = _draw_spectrograms(chosen, spectrogram)
    return figures


def save_page(figures: dict[str, "Figure"], path: str | Path) -> None:
    """Write the pictures, one below the other, as one PNG that appears whole or not at all."""
    from PIL import Image

    page = np.concatenate([pixels(figure) for figure in figures.values()])
    with write_atomically(path) as temporary:
        Image.fromarray(page).save(temporary, format="PNG", optimize=True)


def write_tensorboard(
    writer: "SummaryWriter",
    figures: dict[str, "Figure"],
    checklist: Checklist,
    clips: Sequence[Clip],
    *,
    sample_rate: int,
    step: int = 0,
) -> None:
    """Add the pictures as `data/<name>` and, where there is audio, one clip a class as `data/sounds/<class>`.

    `writer` is a SummaryWriter; sounds are mono at `sample_rate` Hz and cut after ten seconds.
    """
    for name, figure in figures.items():
        writer.add_image(f"data/{name}", pixels(figure), step, dataformats="HWC")
    for clip in examples(checklist, clips)[:MAX_PANELS]:
        waveform = read(clip.path, sample_rate=sample_rate)[: MAX_SOUND_SECONDS * sample_rate]
        # TensorBoard refuses a sound of a single sample.
        waveform = fit_length(waveform, max(len(waveform), sample_rate // 10))
        writer.add_audio(f"data/sounds/{clip.category}", waveform, step, sample_rate=sample_rate)


def examples(checklist: Checklist, clips: Sequence[Clip]) -> list[Clip]:
    """One clip a class, in the order of the targets: the first usable one, if possible not mostly silent.

    A class without a usable clip has none; without audio the list is empty.
    """
    if not checklist.num_with_audio:
        return []
    broken = {*checklist.unreadable, *checklist.empty, *checklist.non_finite}
    dull = {*checklist.silent, *checklist.mostly_silent, *checklist.channels_cancel}
    chosen: dict[int, Clip] = {}
    for clip in sorted(clips, key=lambda clip: clip.filename in dull):  # a stable sort: otherwise in the given order
        if clip.filename not in broken:
            chosen.setdefault(clip.target, clip)
    return [chosen[target] for target in sorted(chosen)]


def _page(height: float) -> "Figure":
    return new_figure(WIDTH, min(height, MAX_HEIGHT))


def _draw_balance(checklist: Checklist) -> "Figure":
    from matplotlib import colormaps
    from matplotlib.ticker import MaxNLocator

    classes = checklist.classes
    figure = _page(1.6 + 0.22 * len(classes))
    axes = figure.add_subplot()
    rows = np.arange(len(classes))
    shades = colormaps["viridis"](np.linspace(0.12, 0.92, len(classes[0].folds)))
    left = np.zeros(len(classes))
    for fold, shade in enumerate(shades):
        counts = np.array([of.folds[fold] for of in classes])
        axes.barh(rows, counts, left=left, height=0.78, color=shade, edgecolor="white", linewidth=0.8, label=f"fold {fold + 1}")
        left += counts
    for row, total in zip(rows, left, strict=True):
        axes.annotate(
            f"{total:.0f}", (total, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9, color=GREY
        )
    axes.set_yticks(rows, [of.name for of in classes], fontsize=9, parse_math=False)
    axes.set_ylim(len(classes) - 0.4, -0.6)
    axes.set_xlim(0, left.max() * 1.06)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("clips")
    tidy(axes, f"Class balance: {checklist.num_clips} clips, {len(classes)} classes", grid="x")
    axes.tick_params(axis="y", length=0)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=len(shades), frameon=False, fontsize=9)
    return figure


def _draw_lengths(lengths: Lengths) -> "Figure":
    figure = _page(3.6)
    axes = figure.add_subplot()
    low, high = min(lengths.min, 0.9 * lengths.most_common), max(lengths.max, 1.1 * lengths.most_common)
    axes.hist(lengths.seconds, bins=60, range=(low, high), color="#31688e", edgecolor="white", linewidth=0.5)
    axes.set_yscale("log")  # a few odd clips beside thousands of equal ones would be invisible otherwise
    axes.set_ylim(0.5, None)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.set_xlabel("length in seconds")
    axes.set_ylabel("clips (log scale)")
    number = len(lengths.seconds)
    title = f"Lengths: {number - lengths.num_other} of {number} clips last {lengths.most_common:.3f} s"
    if lengths.num_other:
        title += f", all between {lengths.min:.3f} and {lengths.max:.3f} s"
    tidy(axes, title)
    return figure


def _draw_spectrograms(chosen: Sequence[Clip], spectrogram: Spectrogram) -> "Figure":
    shown = chosen[:MAX_PANELS]
    pictures = [spectrogram(clip) for clip in shown]
    num_columns = min(MAX_COLUMNS, max(3, len(shown)))
    num_rows = math.ceil(len(shown) / num_columns)
    figure = _page(0.9 + 1.75 * num_rows)
    panels = figure.subplots(num_rows, num_columns, squeeze=False)
    top = max(float(picture.decibels.max()) for picture in pictures)
    longest = max(picture.seconds for picture in pictures)
    image = None
    for i, axes in enumerate(panels.flat):
        if i >= len(shown):
            axes.set_axis_off()
            continue
        image = draw_spectrogram(axes, pictures[i], floor=top - RANGE_DB, ceiling=top, labelled=i % num_columns == 0)
        axes.set_xlim(0, longest)
        axes.set_facecolor("0.9")  # where a short clip has ended
        axes.set_title(shown[i].category, fontsize=10, loc="left", pad=3, parse_math=False)
        axes.tick_params(labelsize=8, labelbottom=i + num_columns >= len(shown))
    figure.supxlabel("time in seconds", fontsize=10)
    figure.supylabel("frequency in Hz", fontsize=10)
    assert image is not None
    figure.colorbar(image, ax=panels, label="dB", fraction=0.02, pad=0.01, aspect=40)
    of_all = f", the first {len(shown)} of {len(chosen)}" if len(chosen) > len(shown) else ""
    figure.suptitle(f"One log-mel per class{of_all}", fontsize=12, fontweight="bold", x=0.01, ha="left")
    return figure
