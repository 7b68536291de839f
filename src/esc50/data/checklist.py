"""What there is to know of a data set before training: balance, lengths, silence, clipping, duplicates, leaks."""

import dataclasses
import logging
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tqdm import tqdm

from esc50.data.audio_facts import AudioFacts, measure
from esc50.data.checklist_facts import ClassCount, Facts, Group, Lengths
from esc50.data.checklist_text import PROBLEM, WARNING, findings, to_text
from esc50.data.clip import Clip, class_names
from esc50.data.folds import NUM_FOLDS, Split, leaking_sources
from esc50.errors import DataError

log = logging.getLogger(__name__)

MOSTLY_SILENT = 0.5  # a clip with a larger share of silent 10 ms windows is mostly silent


class Checklist(Facts):
    """The facts with what they mean, in words."""

    @property
    def unusable(self) -> tuple[str, ...]:
        """What stands in the way of using the data, one line each."""
        return tuple(text for level, text in findings(self) if level == PROBLEM)

    @property
    def problems(self) -> tuple[str, ...]:
        """One line for each thing that is wrong, the gravest first: what makes `ok` false, then the warnings."""
        return tuple(text for level, text in findings(self) if level in (PROBLEM, WARNING))

    def refuse_unusable(self) -> None:
        """Raise DataError where something stands in the way; what it is should have been shown before."""
        if not self.ok:
            raise DataError(f"{len(self.unusable)} findings make clips unusable, named above; mend or remove these files")

    def to_dict(self) -> dict:
        """Everything, ready for JSON: only dicts with string keys, lists, strings, numbers, booleans and None."""
        plain = _plain(dataclasses.asdict(self))
        plain |= {"ok": self.ok, "problems": list(self.problems)}
        return plain | {"findings": [{"level": level, "text": text} for level, text in findings(self)]}

    def to_text(self) -> str:
        """The table for a terminal: counts, what the audio is, then the findings."""
        return to_text(self)


def inspect(
    clips: Sequence[Clip],
    *,
    split: Split | None = None,
    sample_rate: int | None = None,
    num_workers: int | None = None,
    progress: bool = True,
) -> Checklist:
    """Look at the table and, where it is there, at every file; nothing is changed and no broken file is an error.

    `split` adds counts per role, `sample_rate` (Hz) is the rate that clips will be read at. Files are read by
    `num_workers` threads (default: all cores), block by block. Where some clips have audio, one without is unreadable.
    """
    clips = tuple(clips)
    assert clips
    with_audio = [clip for clip in clips if clip.path.is_file()]
    facts = _measure_all(clips if with_audio else (), sample_rate=sample_rate, num_workers=num_workers, progress=progress)
    unreadable = {
        name: fact.refusal for name, fact in facts.items() if fact.refusal and not fact.num_non_finite and not _is_empty(fact)
    }
    good = {name: fact for name, fact in facts.items() if fact.num_samples > 0 and name not in unreadable}
    mostly_silent = _names(good, lambda fact: fact.silent_share > MOSTLY_SILENT and not fact.is_silent)
    same_bytes = _groups(facts, lambda fact: fact.bytes_hash)
    same_content = _groups(facts, lambda fact: fact.content_hash)
    # Digital silence has no content of its own, nor has an unreadable file, yet two such files may be the same.
    either = same_content + tuple(group for group in same_bytes if facts[group[0]].content_hash is None)
    fold_of = {clip.filename: clip.fold for clip in clips}
    target_of = {clip.filename: clip.target for clip in clips}
    roles = split.roles() if split else {}
    return Checklist(
        root=os.path.commonpath([clip.path.parent for clip in clips]),
        protocol=split.protocol if split else None,
        num_clips=len(clips),
        num_with_audio=len(with_audio),
        classes=_class_counts(clips, roles),
        sources_in_two_folds=leaking_sources(clips),
        sources_in_two_roles=_sources_in_two_roles(roles),
        lengths=_lengths([fact.seconds for fact in good.values()]),
        sample_rate=sample_rate,
        sample_rates=dict(Counter(fact.sample_rate for fact in good.values()).most_common()),
        channels=dict(Counter(fact.channels for fact in good.values()).most_common()),
        formats=dict(Counter(fact.encoding for fact in good.values()).most_common()),
        unreadable=unreadable,
        empty={name: fact.refusal or "" for name, fact in facts.items() if _is_empty(fact)},
        non_finite=_names(facts, lambda fact: fact.num_non_finite > 0),
        silent=_names(good, lambda fact: fact.is_silent),
        mostly_silent=mostly_silent,
        mostly_silent_share=len(mostly_silent) / len(good) if good else 0.0,
        clipped=_names(good, lambda fact: fact.is_clipped),
        channels_cancel=_names(good, lambda fact: fact.channels_cancel),
        byte_identical=same_bytes,
        content_identical=tuple(group for group in same_content if len({facts[name].bytes_hash for name in group}) > 1),
        same_content_in_two_folds=tuple(group for group in either if len({fold_of[name] for name in group}) > 1),
        same_content_in_two_classes=tuple(group for group in either if len({target_of[name] for name in group}) > 1),
    )


def check_clips(clips: Sequence[Clip], *, split: Split) -> None:
    """Log what the checklist finds; raise DataError where it stands in the way of training."""
    checklist = inspect(clips, split=split)
    for problem in checklist.problems:
        log.warning("%s", problem)
    checklist.refuse_unusable()


def _measure_all(
    clips: Sequence[Clip], *, sample_rate: int | None, num_workers: int | None, progress: bool
) -> dict[str, AudioFacts]:
    """Facts by filename. Threads suffice: libsndfile, hashing and numpy's loops let go of the interpreter's lock."""

    def measure_clip(clip: Clip) -> AudioFacts:
        return measure(clip.path, sample_rate=sample_rate)

    with ThreadPoolExecutor(num_workers or os.cpu_count()) as pool:
        measured = tqdm(
            pool.map(measure_clip, clips),
            total=len(clips),
            desc="checking audio",
            unit="clip",
            leave=False,
            disable=not (progress and clips),
        )
        return {clip.filename: fact for clip, fact in zip(clips, measured, strict=True)}


def _is_empty(fact: AudioFacts) -> bool:
    return fact.num_samples == 0 and fact.sample_rate > 0


def _names(facts: Mapping[str, AudioFacts], holds: Callable[[AudioFacts], bool]) -> Group:
    return tuple(name for name, fact in facts.items() if holds(fact))


def _groups(facts: Mapping[str, AudioFacts], key: Callable[[AudioFacts], str | None]) -> tuple[Group, ...]:
    """Groups of two and more clips with the same key; clips whose key is None are alone."""
    members = defaultdict(list)
    for name, fact in facts.items():
        if key(fact) is not None:
            members[key(fact)].append(name)
    return tuple(tuple(group) for group in members.values() if len(group) > 1)


def _class_counts(clips: Sequence[Clip], roles: Mapping[str, Iterable[Clip]]) -> tuple[ClassCount, ...]:
    folds = Counter((clip.target, clip.fold) for clip in clips)
    in_role = {role: Counter(clip.target for clip in of_role) for role, of_role in roles.items()}
    counts = []
    for target, name in enumerate(class_names(clips)):
        per_fold = tuple(folds[target, fold] for fold in range(1, NUM_FOLDS + 1))
        counts.append(
            ClassCount(
                name=name,
                target=target,
                clips=sum(per_fold),
                folds=per_fold,
                roles={role: of_role[target] for role, of_role in in_role.items()},
            )
        )
    return tuple(counts)


def _sources_in_two_roles(roles: Mapping[str, Iterable[Clip]]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for role, clips in roles.items():
        for source in {clip.source for clip in clips}:
            found[source].append(role)
    return {source: of for source, of in sorted(found.items()) if len(of) > 1}


def _lengths(seconds: Sequence[float]) -> Lengths | None:
    if not seconds:
        return None
    import numpy as np

    most_common, count = Counter(seconds).most_common(1)[0]
    return Lengths(
        min=min(seconds),
        median=float(np.median(seconds)),
        max=max(seconds),
        most_common=most_common,
        num_other=len(seconds) - count,
        seconds=tuple(seconds),
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(of) for key, of in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(of) for of in value]
    return str(value) if isinstance(value, Path) else value
