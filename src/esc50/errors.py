"""The errors that are a person's to mend: one line each, shown without a traceback."""

import contextlib
import errno
import importlib.util
import os
import sys
from collections.abc import Iterator

# What a disk or a person's rights refuse, wherever it is written: theirs to mend.
REFUSALS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.EISDIR}
INTERRUPTED, UNREAD = 130, 141  # exit status, as shells know it
# Packages that a plain installation does without, and the extra that brings each.
EXTRAS = {
    "captum": "explain",
    "librosa": "benchmark",
    "onnx": "export",
    "onnxruntime": "export",
    "onnxscript": "export",
    "py-spy": "profile",
    "hydra-joblib-launcher": "sweep",
    "hydra-optuna-sweeper": "sweep",
    "hydra-submitit-launcher": "sweep",
    "timm": "timm",
    "gradio": "web",
}


class Esc50Error(Exception):
    """Something a user can put right. The message says what came, what was wanted and what to do next."""

    exit_status = 2


class ConfigError(Esc50Error):
    """The configuration asks for something impossible."""


class DataError(Esc50Error):
    """A file or folder is missing, broken or not what it claims to be."""


class TrainingError(Esc50Error):
    """Training went wrong on its way; what was saved before is still there."""

    exit_status = 1


def missing_extra(what: str, package: str) -> ConfigError:
    """The refusal of `what`, which needs a package of an extra that is not installed."""
    return ConfigError(f'{what} needs {package}, which is not installed; pip install "esc50[{EXTRAS[package]}]"')


def require(what: str, *packages: str) -> None:
    """Raise the ConfigError that names the first of `packages` that is not installed; nothing is imported."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise missing_extra(what, package)


@contextlib.contextmanager
def readable_errors() -> Iterator[None]:
    """Inside, a person's mistake ends the program with its message on stderr and its exit status, without a traceback."""
    try:
        yield
    except Esc50Error as error:
        sys.stderr.write(f"error: {_own_words(error)}\n")
        sys.exit(error.exit_status)
    except BrokenPipeError:  # whoever reads has read enough, as `head` does; nothing more is to be flushed at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(UNREAD)
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        sys.stderr.write(
            f"error: {error.filename or 'the disk'}: {error.strerror}; make room or rights there, or choose another place\n"
        )
        sys.exit(Esc50Error.exit_status)
    except KeyboardInterrupt as interrupt:
        sys.stderr.write(f"interrupted; {interrupt}\n" if str(interrupt) else "interrupted\n")
        sys.exit(INTERRUPTED)


def _own_words(error: Esc50Error) -> str:
    """The message, without the traceback that a loader's worker process wraps around it."""
    text = str(error).strip()
    return text.splitlines()[-1].partition(": ")[2] if "Original Traceback" in text else text
