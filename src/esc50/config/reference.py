"""The page of all settings, written from the schema, the constructors' signatures and `conf/`: every key with its type, its
limits, its default and what it means."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from esc50.config import schema
from esc50.config.command_schema import COMMANDS
from esc50.config.composing import compose, conf_folder
from esc50.config.plain import plain
from esc50.config.problems import fields_of, with_arguments
from esc50.config.signatures import signature_of
from esc50.config.wanted import parts, wanted

INTRODUCTION = """\
# Configuration

Every key of every option, with its type and limits, its default and what it means. `esc50 configuration` writes this page from
the schema, from the signatures of the constructors that options name, and from `conf/`.

Keys are set on the command line: `esc50 train model=melcnn optimizer.lr=1e-3`. A group is chosen by `group=option`. A key that
is not there is refused, and so is one behind a plus sign, except any argument of Lightning's Trainer, as in
`+trainer.limit_train_batches=10`. All problems are reported at once, before anything is loaded.
"""
HELP = """\
esc50 {name}: group=option chooses, key=value sets; `esc50 configuration` says what each key may be and means.

Groups and their options

{groups}

Keys, as these settings compose them

{keys}
Flags: -m trains with each of several values (key=1,2), --config-dir adds a folder of options, --cfg job shows the keys alone;
--hydra-help has the rest.
"""
GROUPS = ("data", "split", "features", "model", "augment", "optimizer", "schedule", "trainer", "watch")
WHOLE = ("experiment", "sweep")  # groups whose options set keys of others
COMMENT = re.compile(r"\s#\s?(.*)$")
Row = tuple[str, str, str, str]  # key, type and limits, default, meaning


def reference() -> str:
    """The page, in Markdown."""
    cfg = compose([])
    sections = [INTRODUCTION, "## Outside of the groups\n", _table(_root(cfg))]
    for group in GROUPS:
        sections.append(f"## {group}\n\n{_sentence(fields_of(schema.Run)[group].description)}\n")
        shown: dict[tuple[str, ...], tuple[str, list[Row]]] = {}
        for option in _options(group):
            sections.append(f"### {group}={option}\n\n{_sentence(_heading(group, option))}\n")
            rows = list(_option(group, option))
            first, known = shown.setdefault(tuple(row[0] for row in rows), (option, rows))
            other = [row for row in rows if row not in known]
            if first != option:
                sections.append(f"The keys of `{group}={first}`" + (", with these defaults:\n" if other else ".\n"))
            sections += [_table(rows if first == option else other)] if rows and (first == option or other) else []
    for group in WHOLE:
        sections += [
            f"## {group}\n",
            *(f"* `{group}={option}`: {_sentence(_heading(group, option))}" for option in _options(group)),
            "",
        ]
    sections.append("## Commands that take a checkpoint or finished runs\n")
    for name, model in COMMANDS.items():
        values = yaml.safe_load((conf_folder() / f"{name}.yaml").read_text(encoding="utf-8"))
        sections += [f"### {name}\n\n{(model.__doc__ or '').strip()}\n", _table(_rows(model, values, {}))]
    return "\n".join(sections).rstrip() + "\n"


def command_help(name: str) -> str:
    """The keys of a command that takes a checkpoint or finished runs, for a terminal: a line each with default and meaning."""
    values = yaml.safe_load((conf_folder() / f"{name}.yaml").read_text(encoding="utf-8"))
    rows = [(f"{key}={default.strip('`')}", meaning) for key, _, default, meaning in _rows(COMMANDS[name], values, {})]
    rows = [(setting.replace("=to be given", "=..."), meaning) for setting, meaning in rows]
    width = max(len(setting) for setting, _ in rows)
    lines = [f"esc50 {name}: {_sentence(COMMANDS[name].__doc__)}", ""]
    for setting, meaning in rows:
        lines += textwrap.wrap(
            f"    {setting:<{width}}  {meaning}", 120, subsequent_indent=" " * (width + 6), break_on_hyphens=False
        )
    return "\n".join([*lines, "", "What stands behind = is the default, ... has to be given."]) + "\n"


def run_help(name: str, *, config: str, overrides: Sequence[str], config_dir: str | None) -> str:
    """Groups with their options, and all keys as these settings compose them. Hydra's own help copies every option first, which
    takes more than a second."""
    folders = [conf_folder(), *([Path(config_dir)] if config_dir else [])]
    options: dict[str, set[str]] = {}
    for path in (path for folder in folders for path in folder.glob("*/*.yaml")):
        options.setdefault(path.parent.name, set()).add(path.stem)
    groups = "\n".join(f"  {group}: {', '.join(sorted(names))}" for group, names in sorted(options.items()))
    cfg = compose(overrides, config=config, config_dir=config_dir, single=False)
    return HELP.format(name=name, groups=groups, keys=textwrap.indent(OmegaConf.to_yaml(cfg), "  "))


def _root(cfg: DictConfig) -> Iterator[Row]:
    values = plain(cfg)
    yield from _rows(schema.Run, {key: value for key, value in values.items() if not isinstance(value, dict)}, {})
    for group in ("checkpoint", "early_stopping", "loader", "paths"):
        yield from _rows(schema.PLAIN[group], values[group], {}, key=group)


def _option(group: str, option: str) -> Iterator[Row]:
    values = plain(compose([f"{group}={option}"])[group])
    meanings = _meanings(group, option)
    if group in schema.COMPONENTS:
        yield from _component(schema.COMPONENTS[group], values, meanings, key=group, given=schema.GIVEN.get(group, set()))
    elif group == "augment":
        for slot, named in values.items():
            for name, part in named.items():
                yield from _component(schema.ComponentSection, part, meanings, key=f"augment.{slot}.{name}")
    elif group == "watch":
        for name, panel in values.items():
            yield from _component(schema.ComponentSection, panel, _meanings("watch/panels", name), key=f"watch.{name}", strip=2)
    else:
        model = schema.FEATURES[values["kind"]] if group == "features" else schema.PLAIN[group]
        yield from _rows(model, values, meanings, key=group)


def _component(
    model: type[schema.ComponentSection],
    values: Mapping[str, Any],
    meanings: Mapping[str, str],
    *,
    key: str,
    given: set[str] | None = None,
    strip: int = 1,
) -> Iterator[Row]:
    whole = with_arguments(model, signature_of(values["_target_"]), given or set())
    yield from _rows(whole, values, meanings, key=key, strip=strip)


def _rows(
    model: type[schema.Section], values: Mapping[str, Any], meanings: Mapping[str, str], *, key: str = "", strip: int = 1
) -> Iterator[Row]:
    """A row for each key that `values` has; `meanings` are found by the key without its first `strip` parts."""
    for name, field in fields_of(model).items():
        whole = f"{key}.{name}" if key else name
        if name not in values or name == "_target_":
            continue
        kind, _, _ = parts(field)
        if isinstance(kind, type) and issubclass(kind, schema.Section):
            yield from _rows(kind, values[name], meanings, key=whole)
            continue
        meaning = field.description or meanings.get(".".join(whole.split(".")[strip:]), "")
        yield whole, _kind(field), _shown(values[name]), meaning


def _kind(field: Any) -> str:
    words = wanted(field)
    return "any value that its constructor takes" if words.startswith("a value") else words


def _shown(value: Any) -> str:
    if value == "???":
        return "to be given"
    text = yaml.safe_dump(value, default_flow_style=True, width=1000, allow_unicode=True).strip().removesuffix("...").strip()
    return f"`{text}`"


def _table(rows: Iterator[Row] | list[Row]) -> str:
    lines = ["| key | what it may be | default | meaning |", "|---|---|---|---|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in (f"`{row[0]}`", *row[1:])) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _options(group: str) -> list[str]:
    return sorted(path.stem for path in (conf_folder() / group).glob("*.yaml"))


def _heading(group: str, option: str) -> str:
    """The comment that an option's file begins with, less the line about its package."""
    lines = []
    for line in (conf_folder() / group / f"{option}.yaml").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith(("# @package", "#   ")):  # nor how it is used
            lines.append(line.removeprefix("#").strip())
    return " ".join(lines)


def _sentence(text: str | None) -> str:
    """Beginning with a capital letter, ending with a full stop; what stands in angle brackets is no markup."""
    text = (text or "").strip().replace("<", "&lt;")
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", ":")) else ".")


def _meanings(group: str, option: str) -> dict[str, str]:
    """What comments say of the keys of an option, in its own file and in those of its group that it is built upon."""
    path = conf_folder() / group / f"{option}.yaml"
    found: dict[str, str] = {}
    for base in yaml.safe_load(path.read_text(encoding="utf-8")).get("defaults", []):
        if isinstance(base, str) and base != "_self_" and (path.parent / f"{base}.yaml").is_file():
            found |= _meanings(group, base)
    return found | comments(path)


def comments(path: Path) -> dict[str, str]:
    """The comment behind each key of a YAML file in block style, by the whole key; a group's own name in front is left out."""
    found: dict[str, str] = {}
    way: list[tuple[int, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        match = re.match(r"( *)([\w.]+):", line)
        if match is None:
            continue
        depth, name = len(match[1]), match[2]
        way = [(at, above) for at, above in way if at < depth] + [(depth, name)]
        if comment := COMMENT.search(line):
            names = [one for _, one in way]
            found[".".join(names)] = comment[1].strip()
            if names[0] == path.parent.name:  # a file of package _global_
                found[".".join(names[1:])] = comment[1].strip()
    return found
