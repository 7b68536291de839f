"""The curve of a learning-rate range test as a picture."""

from typing import TYPE_CHECKING

from esc50.drawing import new_figure
from esc50.training.lr_finder import LrCurve

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_curve(curve: LrCurve) -> "Figure":
    """Smoothed loss against the head's learning rate, with the suggestion marked."""
    figure = new_figure(8, 5)
    axes = figure.add_subplot()
    axes.plot(curve.lrs, curve.losses, color="tab:blue")
    axes.set_xscale("log")
    axes.set_xlabel("learning rate of the head")
    axes.set_ylabel("training loss, smoothed")
    axes.set_title("Learning-rate range test")
    axes.grid(alpha=0.3)
    if curve.suggestion is not None:
        loss = curve.losses[curve.lrs.index(curve.suggestion)]
        axes.plot([curve.suggestion], [loss], "o", color="tab:red")
        axes.annotate(
            f"falls fastest at {curve.suggestion:.2g}",
            (curve.suggestion, loss),
            textcoords="offset points",
            xytext=(8, 8),
            color="tab:red",
        )
    return figure
