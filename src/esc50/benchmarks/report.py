"""The table of all measurements: benchmark.md for people, benchmark.json for programs."""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path

import torch

from esc50.benchmarks.timing import Measurement
from esc50.files import write_atomically
from esc50.results.record import versions
from esc50.training.precision import cpu_flags


def hardware() -> dict[str, str | int | None]:
    """What the figures were measured on."""
    flags = cpu_flags()
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "bfloat16": ", ".join(sorted(flags & {"avx512_bf16", "amx_bf16"})) or "no",
        "system": platform.platform(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def write_report(measurements: Sequence[Measurement], folder: Path, *, command: str) -> str:
    """Write benchmark.md and benchmark.json; returns the text of the first."""
    machine = hardware()
    ratios = {name: value for one in measurements for name, value in one.ratios.items()}
    content = {
        "command": command,
        "hardware": machine,
        "versions": versions(),
        "ratios": ratios,
        "goals": {name: goal for one in measurements for name, goal in one.goals.items()},
        "measurements": [{"title": one.title, "rows": one.rows, "note": one.note, "raw": one.raw} for one in measurements],
    }
    with write_atomically(folder / "benchmark.json") as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    text = _markdown(measurements, machine, command)
    with write_atomically(folder / "benchmark.md") as temporary:
        temporary.write_text(text, encoding="utf-8")
    return text


def _markdown(measurements: Sequence[Measurement], machine: dict, command: str) -> str:
    lines = [
        f"Measured by `{command}` on {machine['processor']}, {machine['cores']} cores, bfloat16 {machine['bfloat16']},"
        f" GPU: {machine['gpu'] or 'none'}; torch {versions()['torch']}. Medians; contestants took turns in one run.",
        "",
    ]
    for one in measurements:
        lines += [f"## {one.title}", "", "| what | value | unit |", "|---|---:|---|"]
        lines += [f"| {what} | {value:.3g} | {unit} |" for what, value, unit in one.rows]
        if one.ratios:
            lines += ["", "| ratio | value | goal | |", "|---|---:|---:|---|"]
            for name, value in one.ratios.items():
                goal = one.goals.get(name)
                sign = "" if goal is None else ("at most " if name.endswith("_time") else "at least ") + f"{goal:g}"
                lines.append(f"| `{name}` | {value:.3g} | {sign} | {'' if goal is None else _mark(one, name)} |")
        lines += ["", f"Limit: {one.note}.", ""]
    return "\n".join(lines)


def _mark(one: Measurement, name: str) -> str:
    return "reached" if one.reached(name) else "**missed**"


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
