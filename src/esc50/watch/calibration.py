"""Is it as sure as it is right? Accuracy against predicted probability, and the probabilities of right and wrong clips."""

import logging
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field
from torch.utils.tensorboard import SummaryWriter

from esc50.config.kinds import PositiveInt
from esc50.drawing import new_figure, pixels, tidy
from esc50.results.predictions import Predictions
from esc50.results.reliability import Calibration, calibration
from esc50.watch.evaluation import Evaluation, EvaluationPanel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

RIGHT, WRONG = "#31688e", "#d95f02"


class CalibrationPanel(EvaluationPanel):
    """Writes the scalar `calibration/ece_<role>` and the pictures `calibration/reliability_<role>`, both of `num_bins` bins,
    and `calibration/probabilities_<role>`."""

    def __init__(self, *, every_n_epochs: PositiveInt, num_bins: Annotated[int, Field(ge=1, le=100)]):
        super().__init__(every_n_epochs=every_n_epochs)
        assert num_bins >= 1
        self.num_bins = num_bins

    def write(self, writer: SummaryWriter, evaluation: Evaluation) -> None:
        predictions, role, step = evaluation.predictions, evaluation.role, evaluation.step
        if not np.isfinite(predictions.probs).all():
            log.warning("no calibration of %s at step %d: some probabilities are not finite", role, step)
            return
        found = calibration(predictions.probs, predictions.targets, num_bins=self.num_bins)
        writer.add_scalar(f"calibration/ece_{role}", found.error, step)
        for name, figure in (
            ("reliability", draw_reliability(found, role=role)),
            ("probabilities", draw_probabilities(predictions, role=role)),
        ):
            writer.add_image(f"calibration/{name}_{role}", pixels(figure), step, dataformats="HWC")


def draw_reliability(found: Calibration, *, role: str) -> "Figure":
    """Accuracy of each bin beside the mean probability in it, which it should equal, and below how many clips it holds."""
    figure = new_figure(6, 6)
    upper, lower = figure.subplots(2, sharex=True, height_ratios=(3, 1))
    filled = found.counts > 0
    starts, widths = found.edges[:-1], np.diff(found.edges)
    upper.bar(
        starts[filled],
        found.accuracy[filled],
        width=widths[filled],
        align="edge",
        color=RIGHT,
        edgecolor="white",
        label="share of right clips",
    )
    upper.plot(
        found.confidence[filled],
        found.confidence[filled],
        "o",
        color=WRONG,
        markersize=5,
        label="mean probability: where the bar should end",
    )
    upper.plot([0, 1], [0, 1], color="0.35", linestyle="--", linewidth=1)
    upper.set_xlim(0, 1)
    upper.set_ylim(0, 1.03)
    upper.set_ylabel("share of right clips")
    tidy(upper, f"Reliability ({role}): expected calibration error {found.error:.3f}")
    lower.bar(starts, found.counts, width=widths, align="edge", color="0.6", edgecolor="white")
    lower.set_xlabel("probability of the predicted class")
    lower.set_ylabel("clips")
    lower.locator_params(axis="y", integer=True, nbins=4)
    tidy(lower, "")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def draw_probabilities(predictions: Predictions, *, role: str) -> "Figure":
    """How sure the model is of the clips it gets right and of those it gets wrong: histograms of the predicted class's
    probability."""
    figure = new_figure(6, 4.5)
    top, is_right = predictions.probs.max(axis=1), predictions.predicted == predictions.targets
    panels = figure.subplots(2, sharex=True)
    for axes, chosen, name, color in zip(panels, (is_right, ~is_right), ("right", "wrong"), (RIGHT, WRONG), strict=True):
        counts, edges = np.histogram(top[chosen], bins=20, range=(0, 1))
        axes.stairs(counts, edges, fill=True, color=color)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, max(1, 1.05 * counts.max()))
        axes.locator_params(axis="y", integer=True, nbins=4)
        axes.set_ylabel("clips")
        mean = f", {top[chosen].mean():.2f} on average" if chosen.any() else ""
        tidy(axes, f"Probability of {chosen.sum()} {name} clips ({role}){mean}")
    panels[-1].set_xlabel("probability of the predicted class")
    return figure
