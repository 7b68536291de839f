"""Which precision to train in: bfloat16 where the hardware has it, float32 elsewhere."""

from pathlib import Path

import torch

LIGHTNING_NAMES = {"float32": "32-true", "bfloat16": "bf16-mixed"}


def resolve_precision(requested: str, *, model: str, accelerator: str) -> tuple[str, str]:
    """`(precision, reason)` for what the trainer asks (`auto`, `float32`, `bfloat16`) and what the model's own YAML says."""
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
    flags = cpu_flags()
    if "avx512_bf16" in flags or "amx_bf16" in flags:
        return "bfloat16", "the CPU has " + ("AVX512-BF16" if "avx512_bf16" in flags else "AMX")
    return "float32", "the CPU has neither AVX512-BF16 nor AMX"


def cpu_flags() -> frozenset[str]:
    """Instruction sets by the kernel's names; empty where the system does not tell."""
    path = Path("/proc/cpuinfo")
    if not path.is_file():
        return frozenset()
    lines = (line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("flags"))
    return frozenset(next(lines, "").partition(":")[2].split())
