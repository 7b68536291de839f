"""Which classes does it tell from the others? Precision against recall, and the areas under the curves, class by class."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field
from torch.utils.tensorboard import SummaryWriter

from esc50.config.kinds import PositiveInt
from esc50.drawing import new_figure, pixels, shortened, tidy
from esc50.results.reliability import ClassRanking, macro, rankings
from esc50.watch.evaluation import Evaluation, EvaluationPanel
from esc50.watch.text_table import text_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

RECALLS = np.linspace(0, 1, 201)[1:]  # at 0 nothing need be found


class Curves(EvaluationPanel):
    """Writes the picture `curves/precision_recall_<role>` with the names of the `num_named` worst classes, the table
    `curves/classes_<role>`, and the scalars `curves/auc_macro_<role>` and `curves/average_precision_macro_<role>`."""

    def __init__(self, *, every_n_epochs: PositiveInt, num_named: Annotated[int, Field(ge=0, le=10)]):
        super().__init__(every_n_epochs=every_n_epochs)
        assert 0 <= num_named <= 10  # that many colours can be told apart
        self.num_named = num_named

    def write(self, writer: SummaryWriter, evaluation: Evaluation) -> None:
        predictions, role, step = evaluation.predictions, evaluation.role, evaluation.step
        if not np.isfinite(predictions.probs).all():
            log.warning("no curves of %s at step %d: some probabilities are not finite", role, step)
            return
        found, names = rankings(predictions.probs, predictions.targets), predictions.class_names
        for name, value in macro_scores(found).items():
            writer.add_scalar(f"curves/{name}_{role}", value, step)
        figure = draw_curves(found, names, title=f"Precision and recall ({role})", num_named=self.num_named)
        writer.add_image(f"curves/precision_recall_{role}", pixels(figure), step, dataformats="HWC")
        writer.add_text(f"curves/classes_{role}", classes_text(found, names), step)


def macro_scores(found: Sequence[ClassRanking]) -> dict[str, float]:
    """`average_precision_macro` and `auc_macro`: means over the classes that occur. No AUC where only one occurs."""
    scores = {
        "average_precision_macro": macro(ranking.average_precision for ranking in found),
        "auc_macro": macro(ranking.auc for ranking in found),
    }
    return {name: value for name, value in scores.items() if value is not None}


def worst_first(found: Sequence[ClassRanking]) -> list[ClassRanking]:
    """By average precision."""
    return sorted(found, key=lambda ranking: ranking.average_precision)


def classes_text(found: Sequence[ClassRanking], names: tuple[str, ...]) -> str:
    """A markdown table of every class, the worst first; those without clips stand last, without scores."""
    rows = [
        (
            names[ranking.target],
            ranking.num_clips,
            f"{ranking.average_precision:.3f}",
            "" if ranking.auc is None else f"{ranking.auc:.3f}",
        )
        for ranking in worst_first(found)
    ]
    present = {ranking.target for ranking in found}
    rows += [(name, 0, "", "") for target, name in enumerate(names) if target not in present]
    return text_table(("class", "clips", "average precision", "AUC"), rows)


def draw_curves(found: Sequence[ClassRanking], names: tuple[str, ...], *, title: str, num_named: int) -> "Figure":
    """Every class's precision against recall, pale; the worst in colour, with name and average precision; the mean in black.

    Each is drawn at the highest threshold that reaches a recall.
    """
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection

    figure = new_figure(8.5, 5)
    axes = figure.add_subplot()
    ordered = worst_first(found)
    curves = np.stack([ranking.precision_at(RECALLS) for ranking in ordered])
    points = np.stack(np.broadcast_arrays(RECALLS, curves), axis=2)  # [classes, recalls, 2]
    axes.add_collection(
        LineCollection(
            list(points[num_named:]),
            colors="0.5",
            linewidths=0.8,
            alpha=0.35,
            label="another class" if len(ordered) > num_named else None,
        )
    )
    for place, ranking in enumerate(ordered[:num_named]):
        axes.plot(
            RECALLS,
            curves[place],
            color=colormaps["tab10"](place),
            linewidth=1.3,
            label=f"{ranking.average_precision:.2f}  {shortened(names[ranking.target], most=24)}",
        )
    mean = macro(ranking.average_precision for ranking in found)
    axes.plot(RECALLS, curves.mean(axis=0), color="black", linewidth=2.5, label=f"{mean:.2f}  mean of {len(found)} classes")
    axes.set_xlim(0, 1.005)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("recall: share of the class's clips that are found")
    axes.set_ylabel("precision: share of those found that are right")
    tidy(axes, title, grid="both")
    legend = figure.legend(
        loc="outside right upper", frameon=False, fontsize=8, title="average precision", alignment="left", title_fontsize=8
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure
