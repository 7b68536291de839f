"""The leaderboard as markdown, csv and picture."""

import csv
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from esc50.drawing import new_figure, tidy
from esc50.files import write_atomically
from esc50.results.leaderboard import NUM_FOLDS, Entry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = (
    "system",
    "folds",
    "seeds",
    "accuracy_mean",
    "accuracy_std",
    "ci_low",
    "ci_high",
    *(f"fold_{fold}" for fold in range(1, NUM_FOLDS + 1)),
    "optimistic_mean",
    "selection",
    "input",
    "pretraining",
    "epochs",
    "parameters",
    "train_seconds",
    "source",
)
OURS, THEIRS = "#31688e", "0.6"
LETTERS = 44  # of a line that names a system


def write_page(entries: Sequence[Entry], folder: Path, *, command: str) -> str:
    """Write leaderboard.md, leaderboard.csv and leaderboard.png into `folder`; returns the text of the first."""
    text = to_markdown(entries, command=command)
    with write_atomically(folder / "leaderboard.md") as temporary:
        temporary.write_text(text, encoding="utf-8")
    with write_atomically(folder / "leaderboard.csv") as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows([_cell(entry, column) for column in COLUMNS] for entry in entries)
    with write_atomically(folder / "leaderboard.png") as temporary:
        draw(entries).savefig(temporary, format="png")
    return text


def to_markdown(entries: Sequence[Entry], *, command: str) -> str:
    """Two tables: the systems of the runs with their folds, then all of them among the published results."""
    ours = [entry for entry in entries if entry.is_ours]
    lines = [
        "# Leaderboard",
        "",
        f"Written by `{command}`. Accuracies in percent. Seeds are averaged before folds; ± is the"
        " standard deviation over folds (n - 1), the interval a 95 % bootstrap over clips.",
        "",
        "| system | folds | seeds | accuracy | 95 % interval | "
        + " | ".join(f"fold {i}" for i in range(1, NUM_FOLDS + 1))
        + " | chosen by | optimistic | epochs | parameters | training |",
        "|---|---:|---:|---:|---:|" + "---:|" * NUM_FOLDS + "---|---:|---:|---:|---:|",
    ]
    for entry in ours:
        folds = [_percent(entry.fold_accuracies.get(fold)) for fold in range(1, NUM_FOLDS + 1)]
        partial = f" (partial: {entry.folds} of {NUM_FOLDS} folds)" if entry.is_partial else ""
        lines.append(
            f"| **{entry.system}**{partial} | {entry.folds} | {entry.seeds} | **{_accuracy(entry)}** |"
            f" {_percent(entry.ci_low)} to {_percent(entry.ci_high)} | {' | '.join(folds)} | {entry.selection} |"
            f" {_percent(entry.optimistic_mean)} | {entry.epochs} | {_millions(entry.parameters)} |"
            f" {_minutes(entry.train_seconds)} |"
        )
    if any(entry.optimistic_mean is not None for entry in ours):
        lines += ["", "*optimistic*: the best epoch on the test fold, as much of the literature reports it; no honest estimate."]
    if len(ours) < len(entries):
        lines += [
            "",
            "## Among the published results",
            "",
            "| | system | accuracy | chosen by | input | pre-training | source |",
            "|---:|---|---:|---|---|---|---|",
        ]
        for place, entry in enumerate(entries, start=1):
            name = f"**{entry.system}**" if entry.is_ours else entry.system
            lines.append(
                f"| {place} | {name} | {_accuracy(entry)} | {entry.selection or '?'} | {entry.input or '?'} |"
                f" {entry.pretraining or '?'} | {entry.source} |"
            )
            if entry.optimistic_mean is not None:
                lines.append(
                    f"| | {entry.system}, *optimistic* | {_percent(entry.optimistic_mean)} | best epoch on the test fold"
                    f" | {entry.input} | {entry.pretraining} | the same runs |"
                )
    return "\n".join(lines) + "\n"


def draw(entries: Sequence[Entry]) -> "Figure":
    """Every entry as a point, the best on top; of our own runs the interval over clips and the single folds too."""
    names = ["\n".join(wrap(f"{entry.system}  {_accuracy(entry)}", LETTERS)) for entry in entries]
    num_lines = sum(1 + name.count("\n") for name in names)
    figure = new_figure(11, 1.6 + 0.28 * len(entries) + 0.16 * (num_lines - len(entries)))
    axes = figure.add_subplot()
    for row, entry in enumerate(entries):
        colour = OURS if entry.is_ours else THEIRS
        if entry.ci_low is not None and entry.ci_high is not None:
            axes.plot(
                [100 * entry.ci_low, 100 * entry.ci_high], [row, row], color=colour, linewidth=3, alpha=0.5, solid_capstyle="butt"
            )
            axes.plot(
                [100 * value for value in entry.fold_accuracies.values()],
                [row] * len(entry.fold_accuracies),
                "|",
                color=colour,
                markersize=8,
            )
        chosen = entry.selection == "best epoch on the test fold"
        axes.plot(100 * entry.accuracy_mean, row, "o", color=colour, markerfacecolor="white" if chosen else colour, markersize=7)
        if entry.optimistic_mean is not None:
            axes.plot(100 * entry.optimistic_mean, row, "o", color=colour, markerfacecolor="white", markersize=7)
    axes.set_yticks(range(len(entries)), names, fontsize=9, parse_math=False)
    for label, entry in zip(axes.get_yticklabels(), entries, strict=True):
        label.set_fontweight("bold" if entry.is_ours else "normal")
    axes.set_ylim(len(entries) - 0.4, -0.6)
    axes.set_xlabel("accuracy in percent\nline: 95 % interval over clips, ticks: folds, hollow: best epoch on the test fold")
    tidy(axes, "Leaderboard", grid="x")
    return figure


def _cell(entry: Entry, column: str) -> object:
    if column.startswith("fold_"):
        return entry.fold_accuracies.get(int(column.removeprefix("fold_")), "")
    value = getattr(entry, column)
    return "" if value is None else value


def _accuracy(entry: Entry) -> str:
    if not entry.is_ours:  # with the digits that were published
        return f"{100 * entry.accuracy_mean:.2f}".rstrip("0").rstrip(".")
    spread = "" if entry.accuracy_std is None else f" ± {100 * entry.accuracy_std:.2f}"
    return f"{100 * entry.accuracy_mean:.2f}{spread}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"


def _millions(value: int | None) -> str:
    return "" if value is None else f"{value / 1e6:.2f} M"


def _minutes(seconds: float | None) -> str:
    return "" if not seconds else f"{seconds / 60:.1f} min"
