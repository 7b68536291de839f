"""Learning-rate schedules as functions of progress, 0 at the first step and 1 after the last.

A function of progress needs no state: a resumed run continues exactly, and a run that is given more epochs follows the
longer run's curve from where it stands.
"""

import math

from esc50.config.kinds import Share, Warmup


def constant(progress: float) -> float:
    """Always the full rate."""
    return 1.0


def cosine(progress: float, *, warmup: Warmup = 0.0, final: Share = 0.0) -> float:
    """Linear rise over the share `warmup`, then half a cosine down to `final` (Loshchilov and Hutter 2017)."""
    if progress < warmup:
        return progress / warmup
    return final + (1 - final) * _fall((progress - warmup) / (1 - warmup))


def one_cycle(progress: float, *, warmup: Warmup = 0.3, start: Share = 0.04, final: Share = 4e-6) -> float:
    """Cosine rise from `start` over the share `warmup`, then cosine fall to `final`, as parts of the full rate (Smith and
    Topin 2018, arXiv 1708.07120; PyTorch's proportions)."""
    if progress < warmup:
        return start + (1 - start) * (1 - _fall(progress / warmup))
    return final + (1 - final) * _fall((progress - warmup) / (1 - warmup))


def _fall(part: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * min(1.0, part)))
