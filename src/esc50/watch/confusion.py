"""What does it confuse? The confusion matrix, the pairs that are confused most, and how many of each class are found."""

from dataclasses import dataclass

import numpy as np
from torch.utils.tensorboard import SummaryWriter

from esc50.config.kinds import PositiveInt
from esc50.drawing import canvas_of, new_figure, shortened, tidy
from esc50.results.metrics import confusion_matrix
from esc50.watch.evaluation import Evaluation, EvaluationPanel
from esc50.watch.text_table import text_table

MAX_NAMES = 100  # more would be too small to read
MAX_BARS = 60
MAX_COUNTED = 15  # classes up to which the numbers of clips are written into the cells
ROW = 0.16  # inches, of a line of small letters
LONGEST_NAME = 24  # letters


class Confusion(EvaluationPanel):
    """Writes the pictures `confusion/matrix_<role>` and `confusion/classes_<role>`, and the table `confusion/pairs_<role>`
    of at most `num_pairs` pairs."""

    def __init__(self, *, every_n_epochs: PositiveInt, num_pairs: PositiveInt):
        super().__init__(every_n_epochs=every_n_epochs)
        assert num_pairs >= 1
        self.num_pairs = num_pairs
        self._pictures: dict[str, tuple[MatrixPicture, ClassesPicture]] = {}

    def write(self, writer: SummaryWriter, evaluation: Evaluation) -> None:
        predictions, role, step = evaluation.predictions, evaluation.role, evaluation.step
        names = predictions.class_names
        matrix = confusion_matrix(predictions.targets, predictions.predicted, num_classes=len(names))
        if role not in self._pictures:
            self._pictures[role] = (
                MatrixPicture(names, title=f"Confusion ({role})"),
                ClassesPicture(names, matrix.sum(axis=1), title=f"Accuracy by class ({role})"),
            )
        of_matrix, of_classes = self._pictures[role]
        for name, image in (("matrix", of_matrix.pixels(matrix)), ("classes", of_classes.pixels(matrix))):
            writer.add_image(f"confusion/{name}_{role}", image, step, dataformats="HWC")
        writer.add_text(f"confusion/pairs_{role}", pairs_text(most_confused(matrix, num_pairs=self.num_pairs), names), step)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Clips of the class `truth` that were taken for the class `predicted`; `share` of all clips of `truth`, 0 to 1."""

    truth: int
    predicted: int
    clips: int
    share: float


def shares_of(matrix: np.ndarray) -> np.ndarray:
    """A confusion matrix of counts with each row as shares of its clips; the row of a class without clips stays zero."""
    return matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)


def most_confused(matrix: np.ndarray, *, num_pairs: int) -> list[Pair]:
    """At most so many pairs, from a confusion matrix of counts: most clips first, among equals the larger share."""
    shares = shares_of(matrix)
    pairs = [
        Pair(
            truth=int(truth), predicted=int(predicted), clips=int(matrix[truth, predicted]), share=float(shares[truth, predicted])
        )
        for truth, predicted in np.argwhere(matrix)
        if truth != predicted
    ]
    return sorted(pairs, key=lambda pair: (-pair.clips, -pair.share))[:num_pairs]


def pairs_text(pairs: list[Pair], names: tuple[str, ...]) -> str:
    """The pairs as a markdown table."""
    if not pairs:
        return "No clip is confused."
    rows = ((names[pair.truth], names[pair.predicted], pair.clips, f"{pair.share:.0%}") for pair in pairs)
    return text_table(("true class", "taken for", "clips", "share of the true class"), rows)


class MatrixPicture:
    """The picture of a confusion matrix. Whatever stays from epoch to epoch is drawn once and kept as pixels, because letters
    are what takes time."""

    def __init__(self, class_names: tuple[str, ...], *, title: str):
        from matplotlib.colors import PowerNorm
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        num_classes = len(class_names)
        side = min(MAX_NAMES, num_classes) * float(np.clip(5 / num_classes, ROW, 0.9))  # inches
        margin = 0.9 + 0.065 * max(len(shortened(name, most=LONGEST_NAME)) for name in class_names)
        figure = new_figure(side + margin + 0.9, side + margin)
        layout = figure.get_layout_engine()
        assert isinstance(layout, ConstrainedLayoutEngine)
        layout.set(h_pad=0.1)
        self.axes = figure.add_subplot()
        # The root makes one clip in ten visible beside the full diagonal.
        self.image = self.axes.imshow(
            np.zeros((num_classes, num_classes)),
            cmap="Blues",
            interpolation="nearest",
            norm=PowerNorm(0.5, vmin=0, vmax=1),
            animated=True,
        )
        named = range(0, num_classes, -(-num_classes // MAX_NAMES))
        labels = [shortened(class_names[target], most=LONGEST_NAME) for target in named]
        self.axes.set_xticks(named, labels, fontsize=7, rotation=90, parse_math=False)
        self.axes.set_yticks(named, labels, fontsize=7, parse_math=False)
        self.axes.set_xlabel("predicted class")
        self.axes.set_ylabel("true class")
        self.axes.set_title(title, loc="left", fontsize=12, fontweight="bold")
        figure.colorbar(
            self.image,
            ax=self.axes,
            label="share of the true class's clips",
            shrink=0.7,
            pad=0.02,
            ticks=(0, 0.1, 0.25, 0.5, 0.75, 1),
            format="{x:g}",
        )
        self._canvas = canvas_of(figure)
        self._canvas.draw()
        self._still = self._canvas.copy_from_bbox(figure.bbox)

    def pixels(self, matrix: np.ndarray) -> np.ndarray:
        """Counts `[classes, classes]`, truth in rows, as uint8 `[height, width, 3]`."""
        shares = shares_of(matrix)
        self._canvas.restore_region(self._still)
        self.image.set_data(shares)
        self.axes.draw_artist(self.image)
        if len(matrix) <= MAX_COUNTED:
            for truth, predicted in np.argwhere(matrix):
                text = self.axes.text(
                    predicted,
                    truth,
                    str(matrix[truth, predicted]),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if shares[truth, predicted] > 0.4 else "black",
                )
                self.axes.draw_artist(text)
                text.remove()
        return np.array(self._canvas.buffer_rgba())[:, :, :3]


class ClassesPicture:
    """Bars of the share of each class's clips that are found, the worst on top, from a confusion matrix.

    `num_clips`: `[classes]`. A class without clips has no bar, and of very many classes only the worst have one; the title
    says so. Drawn once as far as may be, like the matrix.
    """

    def __init__(self, class_names: tuple[str, ...], num_clips: np.ndarray, *, title: str):
        self._names = [shortened(name, most=LONGEST_NAME) for name in class_names]
        num_present = int((num_clips > 0).sum())
        num_bars = min(MAX_BARS, num_present)
        notes = [f"worst {num_bars} of {num_present}"] if num_bars < num_present else []
        if num_present < len(class_names):
            notes.append(f"{len(class_names) - num_present} absent")
        height = 1 + num_bars * (ROW if num_bars > 12 else 0.3)  # inches
        figure = new_figure(6, height)
        figure.set_layout_engine("none")
        self.axes = figure.add_axes((0.04, 0.55 / height, 0.92, 1 - 0.95 / height))
        self.axes.set_xlim(0, 1)
        self.axes.set_ylim(num_bars - 0.4, -0.6)
        self.axes.set_yticks([])
        self.axes.set_xlabel("share of the class's clips that are found (dashed: mean)")
        tidy(self.axes, f"{title}: {', '.join(notes)}" if notes else title, grid="x")
        self.bars = self.axes.barh(range(num_bars), 0.0, height=0.8, color="#9ecae1", animated=True)
        self.texts = [
            self.axes.text(0.01, row, "", va="center", fontsize=7, parse_math=False, animated=True) for row in range(num_bars)
        ]
        self._mean = self.axes.axvline(0, color="0.35", linestyle="--", linewidth=1, animated=True)
        self._canvas = canvas_of(figure)
        self._canvas.draw()
        self._still = self._canvas.copy_from_bbox(figure.bbox)

    def pixels(self, matrix: np.ndarray) -> np.ndarray:
        """Counts `[classes, classes]`, truth in rows, of the same clips, as uint8 `[height, width, 3]`."""
        num_clips, found = matrix.sum(axis=1), np.diag(matrix)
        present = np.flatnonzero(num_clips)
        share = found[present] / num_clips[present]
        worst_first = np.argsort(share, kind="stable")
        self._mean.set_xdata([share.mean()] * 2)
        for bar, text, at in zip(self.bars, self.texts, worst_first, strict=False):
            target = present[at]
            bar.set_width(share[at])
            text.set_text(f"{self._names[target]}  {found[target]} of {num_clips[target]}")
        self._canvas.restore_region(self._still)
        for artist in (*self.bars, self._mean, *self.texts):
            self.axes.draw_artist(artist)
        return np.array(self._canvas.buffer_rgba())[:, :, :3]
