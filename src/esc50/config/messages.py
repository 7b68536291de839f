"""What Hydra refuses, in our words: one line that names the nearest that there is, or how to quote."""

import argparse
import contextlib
import difflib
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    InstantiationException,
    MissingConfigException,
    SearchPathException,
)
from omegaconf.errors import OmegaConfBaseException

from esc50.errors import ConfigError, missing_extra

FULL = "HYDRA_FULL_ERROR"  # set by who wants to see everything
TWO_FLAGS = "Only one of --run"  # begins what Hydra says of flags that exclude each other
# Options that plugins of Hydra bring, and the packages that hold them.
PLUGINS = {
    "hydra/launcher=joblib": "hydra-joblib-launcher",
    "hydra/launcher=submitit_local": "hydra-submitit-launcher",
    "hydra/launcher=submitit_slurm": "hydra-submitit-launcher",
    "hydra/sweeper=optuna": "hydra-optuna-sweeper",
}


class Parser(argparse.ArgumentParser):
    """Hydra's parser of flags, whose refusals are ours."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise ConfigError(f"{message}; settings are key=value, and `--help` has the flags")


@contextlib.contextmanager
def in_our_words(overrides: Sequence[str], keys: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Inside, what Hydra refuses is a ConfigError, unless HYDRA_FULL_ERROR is set; `keys` finds all
    that there are, when a wrong one has to be answered."""
    before = os.environ.get(FULL)
    os.environ[FULL] = before or "1"  # Hydra raises then, instead of printing and ending
    try:
        yield
    except InstantiationException:
        raise
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        if before or (isinstance(error, ValueError) and _unreadable(overrides) is None and TWO_FLAGS not in str(error)):
            raise
        raise ConfigError(line(error, overrides, keys)) from None
    finally:
        if before is None:
            os.environ.pop(FULL, None)


def line(error: Exception, overrides: Sequence[str], keys: Callable[[], Sequence[str]]) -> str:
    """One line for what Hydra said of these overrides."""
    text = str(error).strip()
    if (unreadable := _unreadable(overrides)) is not None:
        return unreadable
    if isinstance(error, MissingConfigException):
        return _no_option(error)
    if isinstance(error, SearchPathException):
        return text.replace("Additional config directory", "--config-dir:") + "; give the folder of your own options"
    if isinstance(error, ConfigCompositionException):
        return _not_composed(text, keys)
    return _first(text)


def _unreadable(overrides: Iterable[str]) -> str | None:
    """The first override that Hydra's grammar cannot read, with how to write it."""
    parser = OverridesParser.create()
    for override in overrides:
        if _reads(parser, override):
            continue
        key, sign, value = override.partition("=")
        if not sign:
            return f"{override}: wanted key=value; write {override}=..."
        if not key.strip("+~"):
            return f"{override}: wanted key=value, the key is missing"
        quoted = '{}="{}"'.format(key, value.replace("\\", "\\\\").replace('"', '\\"'))
        if _reads(parser, quoted):
            return f"{override}: this value has to be quoted; write {shlex.quote(quoted)}"
        return f"{override}: not a setting; wanted key=value, with the value in quotes where it has any of =()[]{{}},:"
    return None


def _reads(parser: OverridesParser, override: str) -> bool:
    try:
        read = parser.parse_override(override)
    except HydraException:
        return False
    return bool(read.key_or_group)


def _no_option(error: MissingConfigException) -> str:
    named = (error.missing_cfg_file or "").removesuffix(".yaml")
    group, _, option = named.rpartition("/")
    options = list(error.options or ())
    if not group:
        return f"no configuration named {named or 'that'}; leave out --config-name, or see --config-dir"
    if (chosen := f"{group}={option}") in PLUGINS:
        return str(missing_extra(chosen, PLUGINS[chosen]))
    near = difflib.get_close_matches(option, options, n=1)
    advice = f"did you mean {group}={near[0]}?" if near else f"there are {', '.join(options)}" if options else "it has none"
    return f"{chosen}: no such option; {advice}"


def _not_composed(text: str, keys: Callable[[], Sequence[str]]) -> str:
    first = _first(text)
    key = next(iter(re.findall(r"'([^']+)'", first)), "")
    if first.startswith("Could not override") and "Did you mean to override" in text:
        near = text.partition("Did you mean to override")[2].partition("?")[0].removeprefix(" one of").strip()
        return f"{key}: it stands elsewhere; write {', '.join(near.split(', ')[:3])}"
    if first.startswith(("Could not override", "Could not delete")):
        nearest = _nearest(key, keys())
        return f"{key}: no such key" + (f"; did you mean {nearest}?" if nearest else "; `--cfg job` shows all there are")
    if first.startswith("Could not append"):
        return f"+{key}: it is there already; leave out the plus sign"
    if first.startswith("Ambiguous value"):
        name, _, values = key.partition("=")
        return f"{key}: several values; add -m to train with each, or write {shlex.quote(f'{name}=[{values}]')} for a list"
    if "appears more than once" in text:
        return f"{text.split()[0]} is chosen twice; leave out the plus sign, or one of the two"
    return first


def _nearest(key: str, keys: Sequence[str]) -> str | None:
    """The whole key that is most like this one; of keys in other sections only one whose last part is the same."""
    near = difflib.get_close_matches(key, keys, n=1, cutoff=0.7)
    if near:
        return near[0]
    last = key.rpartition(".")[2]
    same = [one for one in keys if one.rpartition(".")[2] == last]
    return same[0] if same else None


def _first(text: str) -> str:
    return next(iter(text.splitlines()), text)
