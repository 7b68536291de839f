"""Show where the time of a training goes, as a flame graph: `esc50 profile experiment=quickstart`.

It takes the settings of `esc50 train` and needs py-spy (extra: profile).
"""

import sys
from collections.abc import Sequence

from esc50.commands.entry import say


def main(overrides: Sequence[str]) -> None:
    from esc50.benchmarks.profiler import profile

    sys.exit(profile(overrides, show=say))
