"""Less talk from libraries."""

import logging
import warnings

from lightning.pytorch.utilities import rank_zero_only


def is_first_process() -> bool:
    """Whether this process is the first, or the only one, of those that train a run together."""
    return rank_zero_only.rank == 0  # type: ignore[attr-defined]  # Lightning sets it without a declaration


def quieten() -> None:
    """Keep what a user can act upon and drop what libraries say about themselves, and what all but the first of several
    processes say."""
    if not is_first_process():
        logging.getLogger().setLevel(logging.WARNING)
    for name in ("lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in (
        ".*does not have many workers.*",
        ".*smaller than the logging interval.*",
        ".*litlogger.*",
        ".*`isinstance.treespec, LeafSpec.` is deprecated.*",
        ".*Total length of `list` across ranks is zero.*",
        ".*Checkpoint directory .* exists and is not empty.*",
        ".*Be aware that when using `ckpt_path`, callbacks used.*",
        ".*It is recommended to use .*sync_dist=True.*",
        ".*you defined a `validation_step` but have no `val_dataloader`.*",
    ):
        warnings.filterwarnings("ignore", message)
