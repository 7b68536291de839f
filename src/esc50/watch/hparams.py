"""Which settings gave which score? Settings and final metrics in the run itself, for TensorBoard's HPARAMS tab."""

from collections.abc import Mapping
from typing import Any

from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams


def write_hparams(writer: SummaryWriter, settings: Mapping[str, Any], metrics: Mapping[str, float], *, step: int) -> None:
    """Write both into the events of the run itself (SummaryWriter.add_hparams would open another folder inside it)."""
    values = {key: value if isinstance(value, bool | int | float | str) else str(value) for key, value in settings.items()}
    for summary in hparams(values, dict(metrics)):
        writer.file_writer.add_summary(summary)  # type: ignore[attr-defined]  # torch declares the attribute as None
    for name, value in metrics.items():
        writer.add_scalar(name, value, step)


def flat_settings(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The config as flat keys, less paths and what is only watched; a component is named by its class."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if prefix == "" and key in ("paths", "watch", "resume", "checkpoint"):
            continue
        if isinstance(value, Mapping):
            flat |= flat_settings(value, f"{prefix}{key}.")
        elif key == "_target_":
            flat[prefix.rstrip(".")] = str(value).rpartition(".")[2]
        else:
            flat[f"{prefix}{key}"] = value
    return flat
