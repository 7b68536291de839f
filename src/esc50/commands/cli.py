"""The program `esc50`, and what its scripts share: from a command's name to the command."""

import argparse
import contextlib
import importlib
import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from esc50.config.composing import conf_folder, known_keys
from esc50.config.messages import Parser, in_our_words
from esc50.errors import ConfigError, readable_errors

NAMES = (
    "train",
    "download",
    "inspect",
    "split",
    "precompute",
    "find-lr",
    "evaluate",
    "predict",
    "explain",
    "leaderboard",
    "compare",
    "ensemble",
    "export",
    "serve",
    "profile",
    "benchmark",
    "configuration",
)
HELP = {"-h", "--help"}
USAGE = """\
esc50: train, compare and explain environmental-sound classifiers

    esc50 train experiment=quickstart        a first run: no network, no GPU, two minutes
    esc50 train model=resnet50 augment=specaugment
    esc50 <command> --help                   what it can be given

{commands}

Tab completion: eval "$(esc50 -sc install=bash)"; zsh and fish likewise
"""


def main() -> None:
    """`esc50 <command> ...`."""
    with readable_errors():
        arguments = sys.argv[1:]
        if not arguments or arguments[0] in ("-h", "--help", "help"):
            sys.stdout.write(USAGE.format(commands="\n".join(f"    {name:<15}{purpose(name)}" for name in NAMES)))
        elif arguments[0] == "--version":
            sys.stdout.write(f"esc50 {metadata.version('esc50')}\n")
        elif arguments[0] in ("-sc", "--shell-completion"):
            complete(arguments)
        elif arguments[0].replace("_", "-") not in NAMES:
            raise ConfigError(unknown(arguments[0]))
        else:
            run(arguments[0], arguments[1:])


def run(name: str, arguments: Sequence[str] | None = None) -> None:
    """Run a command with `arguments`, those of the process by default."""
    arguments = sys.argv[1:] if arguments is None else arguments
    module = importlib.import_module(_module(name))
    function = module.main
    with readable_errors(), modules_here(arguments):
        if not hasattr(function, "config"):  # it takes its arguments as they are
            if HELP.isdisjoint(arguments):
                function(arguments)
            else:
                sys.stdout.write(module.__doc__ or "")
            return
        from hydra import version
        from hydra._internal.utils import _run_hydra, get_args_parser

        version.setbase("1.3")

        # sys.argv stays whole, since Lightning starts the processes of several devices by it.
        parser = get_args_parser()
        parser.__class__ = Parser
        flags = parser.parse_intermixed_args(list(arguments))  # settings may stand on both sides of a flag
        if flags.help:
            sys.stdout.write(_help(name, function.config, flags))
            return
        with in_our_words(flags.overrides, lambda: known_keys(function.config)):
            _run_hydra(flags, parser, function, str(conf_folder()), function.config)


def _help(name: str, config: str, flags: argparse.Namespace) -> str:
    from esc50.config.command_schema import COMMANDS
    from esc50.config.reference import command_help, run_help

    if config in COMMANDS:
        return command_help(config)
    return run_help(name, config=config, overrides=flags.overrides, config_dir=flags.config_dir)


def purpose(name: str) -> str:
    """A command in one line."""
    text = importlib.import_module(_module(name)).__doc__ or ""
    return text.partition("\n")[0].partition(": ")[0].rstrip(".")


def unknown(name: str) -> str:
    """The refusal of a command that is none."""
    import difflib

    near = difflib.get_close_matches(name, NAMES, n=1)
    advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
    return f"esc50 {name}: no such command; {advice}"


@contextlib.contextmanager
def modules_here(arguments: Sequence[str]) -> Iterator[None]:
    """Inside, Python finds modules where the command is started and beside the folder of --config-dir, behind all that is
    installed: what one's own options name lies there."""
    places = [Path.cwd()]
    for flag, value in itertools.pairwise(arguments):
        if flag in ("--config-dir", "-cd"):
            places.append(Path(value).resolve().parent)
    places += [Path(one.partition("=")[2]).resolve().parent for one in arguments if one.startswith("--config-dir=")]
    added = [str(place) for place in dict.fromkeys(places) if str(place) not in sys.path]
    before = os.environ.get("PYTHONPATH")
    sys.path += added
    os.environ["PYTHONPATH"] = os.pathsep.join([*([before] if before else []), *added])  # of processes that this one starts
    try:
        yield
    finally:
        sys.path[:] = [place for place in sys.path if place not in added]
        os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


def complete(arguments: Sequence[str]) -> None:
    """Answer a shell that completes: the names of commands, or what Hydra knows of a command's keys and options."""
    line = os.environ.get("COMP_LINE", "")
    words = line.split()
    if not any(one.startswith("query=") for one in arguments):
        run("train", arguments)  # Hydra writes the shell's function; it is the same for every command
    elif len(words) < 2 or (len(words) == 2 and not line.endswith(" ")):
        sys.stdout.write(" ".join(NAMES) + "\n")
    elif words[1] in NAMES:
        os.environ["COMP_LINE"] = " ".join([words[0], *words[2:]]) + (" " if line.endswith(" ") else "")
        run(words[1], arguments)


def _module(name: str) -> str:
    return f"esc50.commands.{name.replace('-', '_')}"
