"""Show every key of every option, with its limits, its default and what it means: `esc50 configuration`.

The page docs/configuration.md is what it writes.
"""

import sys
from collections.abc import Sequence

from esc50.errors import ConfigError


def main(arguments: Sequence[str]) -> None:
    if arguments:
        raise ConfigError(f"esc50 configuration takes no settings, not {' '.join(arguments)}")
    from esc50.config.reference import reference

    sys.stdout.write(reference())
