"""The errors that are a person's to mend: one line each, shown without a traceback."""


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
