"""Where and in which precision to train: what the hardware has."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import torch

from esc50.errors import ConfigError

LIGHTNING_NAMES: dict[str, Literal["32-true", "bf16-mixed"]] = {"float32": "32-true", "bfloat16": "bf16-mixed"}


def check_device(*, accelerator: str, devices: int, strategy: str) -> None:
    """Raise ConfigError where this machine cannot give what the trainer asks for."""
    import lightning as L  # which takes seconds, and what only predicts does without
    from lightning.fabric.utilities.exceptions import MisconfigurationException

    try:
        L.Trainer(
            accelerator=accelerator,
            devices=devices,
            strategy=strategy,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
    except (MisconfigurationException, ValueError, ImportError) as error:
        raise ConfigError(
            f"trainer.accelerator={accelerator} trainer.devices={devices} trainer.strategy={strategy}:"
            f" {str(error).strip().splitlines()[0]}"
        ) from None


def available(accelerator: str) -> str:
    """`accelerator` where this machine has it, else `auto`: a checkpoint may have been made elsewhere."""
    cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    here = {"gpu": cuda or mps, "cuda": cuda, "mps": mps}
    return accelerator if here.get(accelerator, True) else "auto"


def device_for(accelerator: str) -> torch.device:
    """The device of an `accelerator` such as `auto`, or of what this machine has instead."""
    name = available(accelerator)
    if name in ("auto", "gpu"):
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    return torch.device(name, 0) if name != "cpu" else torch.device(name)


def resolve_precision(requested: str, *, model: str, accelerator: str, compiled: bool = False) -> tuple[str, str]:
    """`(precision, reason)` for what the trainer asks (`auto`, `float32`, `bfloat16`) and what the model's own YAML says;
    `compiled`: whether torch.compile is used."""
    if requested != "auto":
        return requested, "asked for by trainer.precision"
    if model != "auto":
        return model, "asked for by model.precision"
    if accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available():
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return "bfloat16", "the GPU has it"
        return "float32", "the GPU has no bfloat16"
    if accelerator == "mps" or (accelerator == "auto" and torch.backends.mps.is_available()):
        return "float32", "bfloat16 is not tried on this device"
    if compiled:  # seen with torch 2.14.1: gradients of batch normalisation come out as NaN
        return "float32", "compiled models get wrong gradients in bfloat16 on the CPU"
    flags = cpu_flags()
    if "avx512_bf16" in flags or "amx_bf16" in flags:
        return "bfloat16", "the CPU has " + ("AVX512-BF16" if "avx512_bf16" in flags else "AMX")
    return "float32", "the CPU has neither AVX512-BF16 nor AMX"


@contextlib.contextmanager
def in_float32(device_type: str) -> Iterator[None]:
    """Full float32: no autocast, and no TF32 in a GPU's convolutions, which torch allows by default."""
    with (
        torch.autocast(device_type, enabled=False),
        torch.backends.cudnn.flags(
            enabled=torch.backends.cudnn.enabled,
            benchmark=torch.backends.cudnn.benchmark,
            deterministic=torch.backends.cudnn.deterministic,
            allow_tf32=False,
        ),
    ):
        yield


def cpu_flags() -> frozenset[str]:
    """Instruction sets by the kernel's names; empty where the system does not tell."""
    path = Path("/proc/cpuinfo")
    if not path.is_file():
        return frozenset()
    lines = (line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("flags"))
    return frozenset(next(lines, "").partition(":")[2].split())
