"""What there is to know of a data set, as plain data."""

from dataclasses import dataclass

Group = tuple[str, ...]  # filenames that belong together


@dataclass(frozen=True, kw_only=True)
class ClassCount:
    """Clips of one class: all of them, per fold (1 to 5, in order), and per role of the split."""

    name: str
    target: int
    clips: int
    folds: tuple[int, ...]
    roles: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """Lengths in seconds; `seconds` has one number for each readable clip that holds samples, in their order."""

    min: float
    median: float
    max: float
    most_common: float
    num_other: int
    seconds: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The state of a data set as plain data. Clips are named by their filename.

    `unreadable` and `empty` map filename to reason. `byte_identical` holds groups of equal files, `content_identical`
    groups of the same samples in files that differ (WAV and FLAC, or more digital silence at the end).
    `sources_in_two_folds` and `sources_in_two_roles` map a source recording to the folds or roles of its takes.
    """

    root: str
    protocol: str | None
    num_clips: int
    num_with_audio: int
    classes: tuple[ClassCount, ...]
    sources_in_two_folds: dict[str, list[int]]
    sources_in_two_roles: dict[str, list[str]]
    lengths: Lengths | None = None
    sample_rate: int | None = None  # Hz, the rate that the project reads at, where it is known
    sample_rates: dict[int, int]
    channels: dict[int, int]
    formats: dict[str, int]
    unreadable: dict[str, str]
    empty: dict[str, str]
    non_finite: Group
    silent: Group
    mostly_silent: Group
    mostly_silent_share: float
    clipped: Group
    channels_cancel: Group
    byte_identical: tuple[Group, ...]
    content_identical: tuple[Group, ...]
    same_content_in_two_folds: tuple[Group, ...]
    same_content_in_two_classes: tuple[Group, ...]

    @property
    def ok(self) -> bool:
        """Whether every clip that was looked at can be used; leaks and duplicates are warnings and leave this true."""
        return not (self.unreadable or self.empty or self.non_finite)
