"""Which settings gave which score? Settings and final metrics in the run itself, for TensorBoard's HPARAMS tab."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams


def write_hparams(folder: Path, settings: Mapping[str, Any], metrics: Mapping[str, float], *, step: int) -> None:
    """Write both into the event folder of the run itself (SummaryWriter.add_hparams would open another one inside it).

    `step` is the number of training steps; what an earlier test wrote from there on is taken back.
    """
    values = {key: value if isinstance(value, bool | int | float | str) else str(value) for key, value in settings.items()}
    with SummaryWriter(folder, purge_step=step) as writer:
        for summary in hparams(values, dict(metrics)):
            writer.file_writer.add_summary(summary)
        for name, value in metrics.items():
            writer.add_scalar(name, value, step)
