"""A checklist in words: what is wrong, worth knowing or fine, and the table for a terminal."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from esc50.data.audio_facts import CLIPPED_RUN, SILENCE_DBFS
from esc50.data.checklist_facts import Facts

PROBLEM, WARNING, NOTE, FINE = "problem", "warning", "note", "ok"
TEXT_WIDTH = 110
MAX_NAMES = 5  # named in a line of the terminal; checklist.json has them all
MAX_FILES = 10  # unreadable files that get a line of their own

Finding = tuple[str, str]  # level, one line


def findings(facts: Facts) -> list[Finding]:
    """Every finding as (level, one line), the gravest first."""
    found = [
        *_broken(facts),
        *_doubtful_audio(facts),
        *_duplicates(facts),
        *_leaks(facts),
        *_balance(facts),
        *_differences(facts),
    ]
    levels = (PROBLEM, WARNING, NOTE, FINE)
    return sorted(found, key=lambda finding: levels.index(finding[0]))


def _broken(facts: Facts) -> Iterable[Finding]:
    if not facts.num_with_audio:
        yield NOTE, f"no audio under {facts.root}: only the table was checked"
        return
    unreadable = list(facts.unreadable.items())
    yield from ((PROBLEM, f"{name}: {reason}") for name, reason in unreadable[:MAX_FILES])
    if len(unreadable) > MAX_FILES:
        yield PROBLEM, f"{len(unreadable) - MAX_FILES} more unreadable files"
    if facts.empty:
        reasons = [f"{name} ({reason})" for name, reason in facts.empty.items()]
        yield PROBLEM, f"{_count(reasons, 'clip')} without a sample: {_listed(reasons)}"
    if facts.non_finite:
        yield PROBLEM, (f"{_count(facts.non_finite, 'clip')} with samples that are NaN or infinite: {_listed(facts.non_finite)}")
    if facts.ok:
        yield FINE, "every file is readable, holds samples, and all of them are finite"


def _doubtful_audio(facts: Facts) -> Iterable[Finding]:
    if not facts.num_with_audio:
        return
    silence = f"{SILENCE_DBFS:g} dBFS"
    if facts.silent:
        yield WARNING, f"{_count(facts.silent, 'silent clip')} (peak below {silence}): {_listed(facts.silent)}"
    else:
        yield FINE, f"no clip is silent (peak below {silence})"
    if facts.clipped:
        yield (
            WARNING,
            (
                f"{_count(facts.clipped, 'clipped clip')} ({CLIPPED_RUN} samples in a row at full scale, or"
                f" floats beyond it): {_listed(facts.clipped)}"
            ),
        )
    else:
        yield FINE, "no clip is clipped"
    if facts.channels_cancel:
        yield (
            WARNING,
            (
                f"{_count(facts.channels_cancel, 'clip')} whose channels cancel each other when averaged: "
                f"{_listed(facts.channels_cancel)}"
            ),
        )
    if facts.mostly_silent:
        yield (
            NOTE,
            (
                f"{_count(facts.mostly_silent, 'clip')} ({facts.mostly_silent_share:.0%}) below {silence}"
                f" for more than half of the time: {_listed(facts.mostly_silent)}"
            ),
        )


def _duplicates(facts: Facts) -> Iterable[Finding]:
    if not facts.num_with_audio:
        return
    for groups, what in (
        (facts.byte_identical, "of equal files"),
        (facts.content_identical, "of equal sound in different files"),
        (facts.same_content_in_two_folds, "of equal sound in two folds"),
        (facts.same_content_in_two_classes, "of equal sound in two classes"),
    ):
        if groups:
            yield WARNING, f"{_count(groups, 'group')} {what}: {_listed([' = '.join(group) for group in groups])}"
    if not facts.byte_identical and not facts.content_identical:
        yield FINE, "no two clips hold the same sound"


def _leaks(facts: Facts) -> Iterable[Finding]:
    sources = facts.sources_in_two_folds
    if sources:
        named = [f"{source} ({', '.join(map(str, folds))})" for source, folds in sources.items()]
        yield WARNING, f"{_count(named, 'source')} in more than one fold: {_listed(named)}"
    else:
        yield FINE, "no source lies in two folds"
    if facts.sources_in_two_roles:
        named = [f"{source} ({', '.join(roles)})" for source, roles in facts.sources_in_two_roles.items()]
        yield WARNING, f"{_count(named, 'source')} on more than one side of this split: {_listed(named)}"


def _balance(facts: Facts) -> Iterable[Finding]:
    classes = facts.classes
    fewest, most = (pick(classes, key=lambda of: of.clips) for pick in (min, max))
    used = [i for i in range(len(classes[0].folds)) if any(of.folds[i] for of in classes)]
    cells = {of.folds[i] for of in classes for i in used}
    if len(cells) == 1:
        yield FINE, f"balanced: {_count(fewest.clips, 'clip')} a class, {cells.pop()} in every fold"
    elif fewest.clips == most.clips:
        yield NOTE, f"{fewest.clips} clips a class, but from {min(cells)} to {max(cells)} a class and fold"
    else:
        yield NOTE, f"not balanced: from {fewest.clips} ({fewest.name}) to {most.clips} ({most.name}) clips a class"
    absent = [of.name for of in classes if not all(of.folds[i] for i in used)]
    if absent:
        yield WARNING, f"{_count(absent, 'class')} without a clip in some fold: {_listed(absent)}"
    for role in classes[0].roles:
        absent = [of.name for of in classes if not of.roles[role]]
        if 0 < len(absent) < len(classes):  # a role without any clip belongs to the protocol
            yield WARNING, f"{_count(absent, 'class')} without a clip in {role}: {_listed(absent)}"


def _differences(facts: Facts) -> Iterable[Finding]:
    lengths = facts.lengths
    if lengths and lengths.num_other:
        yield (
            NOTE,
            (f"{_count(lengths.num_other, 'clip')} of another length than {lengths.most_common:.3f} s, padded or cut when read"),
        )
    wanted = facts.sample_rate or next(iter(facts.sample_rates), None)
    other = sum(count for rate, count in facts.sample_rates.items() if rate != wanted)
    if other:
        yield NOTE, f"{_count(other, 'clip')} not at {wanted} Hz, resampled when read"
    several = sum(count for channels, count in facts.channels.items() if channels > 1)
    if several:
        yield NOTE, f"{_count(several, 'clip')} with several channels, averaged when read"


def to_text(facts: Facts) -> str:
    """Heading, one row a class, what the audio is, findings; plain ASCII marks, so that any terminal shows them."""
    sizes = {role: sum(of.roles[role] for of in facts.classes) for role in facts.classes[0].roles}
    heading = f"{_count(facts.num_clips, 'clip')} in {_count(facts.classes, 'class')} under {facts.root}"
    if facts.protocol:
        in_roles = ", ".join(f"{size} {role}" for role, size in sizes.items() if size)
        heading += f"\nsplit={facts.protocol}: {in_roles}"
    lines = [_wrapped(f"{level:>8}  {text}") for level, text in findings(facts)]
    return "\n\n".join([heading, _class_table(facts), *_audio_lines(facts), "\n".join(lines)])


def _wrapped(line: str) -> str:
    return textwrap.fill(line, TEXT_WIDTH, subsequent_indent=" " * 10, break_long_words=False, break_on_hyphens=False)


def _class_table(facts: Facts) -> str:
    classes = facts.classes
    roles = [role for role in classes[0].roles if any(of.roles[role] for of in classes)]
    folds = [f"fold {fold}" for fold in range(1, len(classes[0].folds) + 1)]
    counts = [(of.clips, *of.folds, *(of.roles[role] for role in roles)) for of in classes]
    rows: list[tuple[str | int, ...]] = [("", "class", "clips", *folds, *roles)]
    rows += [(str(of.target), of.name, *numbers) for of, numbers in zip(classes, counts, strict=True)]
    rows += [("", "all", *map(sum, zip(*counts, strict=True)))]
    texts = [[str(cell) if cell != 0 else "-" for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    gaps = ["  " if i not in (3, 3 + len(folds)) else "    " for i in range(len(widths))]
    lines = []
    for row in texts:
        cells = [
            cell.ljust(width) if i == 1 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("".join(gap + cell for gap, cell in zip(gaps, cells, strict=True)))
    rule = "  " + "-" * (max(map(len, lines)) - 2)
    return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1]])


def _audio_lines(facts: Facts) -> list[str]:
    if not facts.lengths:
        return []
    lengths = facts.lengths
    num_common = len(lengths.seconds) - lengths.num_other
    rows = [
        ("audio", f"{facts.num_with_audio} of {_count(facts.num_clips, 'clip')}"),
        (
            "length",
            f"{lengths.min:.3f} to {lengths.max:.3f} s, median {lengths.median:.3f} s; {num_common} of"
            f" {len(lengths.seconds)} are {lengths.most_common:.3f} s",
        ),
        ("rate", _counted({f"{rate} Hz": count for rate, count in facts.sample_rates.items()})),
        (
            "channels",
            _counted(
                {
                    {1: "mono", 2: "stereo"}.get(channels, f"{channels} channels"): count
                    for channels, count in facts.channels.items()
                }
            ),
        ),
        ("format", _counted(facts.formats)),
    ]
    return ["\n".join(f"{name:>8}  {text}" for name, text in rows)]


def _counted(counts: Mapping[str, int]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{name} ({count})" for name, count in counts.items())


def _count(things: int | Sequence | Mapping, noun: str) -> str:
    number = things if isinstance(things, int) else len(things)
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
