"""The configuration's door: every problem is reported at once, before anything heavy is imported."""

import glob
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, ListConfig
from omegaconf.errors import OmegaConfBaseException

from esc50.config import schema
from esc50.config.command_schema import COMMANDS
from esc50.config.names import run_folder
from esc50.config.plain import plain
from esc50.config.problems import Problem, component_problems, no_such_key, section_problems
from esc50.config.relations import RELATIONS, Values, files, outside, search
from esc50.config.signatures import signature_of
from esc50.errors import ConfigError

TRAINER = "lightning.pytorch.trainer.trainer.Trainer"
# What a run sets itself, from other keys.
NOT_YOURS = {
    "self", "default_root_dir", "logger", "callbacks", "profiler", "plugins", "gradient_clip_val", "accumulate_grad_batches",
    "use_distributed_sampler", "enable_checkpointing", "max_steps", "max_time",
}  # fmt: skip


def check(cfg: DictConfig) -> None:
    """Raise one ConfigError that lists every problem of `cfg`, each in a plain line."""
    try:
        values = plain(cfg, resolve=True)
    except OmegaConfBaseException as error:
        raise ConfigError(f"the configuration does not resolve: {str(error).splitlines()[0]}") from None
    wrong = dict(wrong_values(values))
    of = Values(values, wrong)
    refuse([*wrong.values(), *(problem for relation in RELATIONS for problem in relation(of)), *_places(of)])


def wrong_values(values: dict[str, Any]) -> Iterator[Problem]:
    """Each key whose value is not what the schema wants, with the problem in words."""
    yield from section_problems(schema.Benchmark if "suite" in values else schema.Run, values)
    for group, model in schema.PLAIN.items():
        if isinstance(values.get(group), dict):
            yield from section_problems(model, values[group], key=group, also=_more(group, values[group], model))
    if isinstance(features := values.get("features"), dict):
        yield from section_problems(schema.FEATURES.get(features.get("kind"), schema.MelPng), features, key="features")
    for group, component in schema.COMPONENTS.items():
        if isinstance(values.get(group), dict):
            yield from component_problems(component, values[group], key=group, given=schema.GIVEN.get(group, ()))
    if isinstance(augment := values.get("augment"), dict):
        yield from _augment(augment)
    for name, panel in (values.get("watch") or {}).items() if isinstance(values.get("watch"), dict | None) else ():
        if panel is not None:
            yield from component_problems(schema.ComponentSection, panel, key=f"watch.{name}", optional=True)


def _augment(slots: dict[str, Any]) -> Iterator[Problem]:
    for slot, parts in slots.items():
        key = f"augment.{slot}"
        if slot not in schema.SLOTS:
            yield key, no_such_key("augment", slot, schema.SLOTS)
        elif parts is not None and not isinstance(parts, dict):
            yield key, f"{key}={parts}: wanted keys below it or null"
        else:
            for name, part in (parts or {}).items():
                if part is None:
                    continue
                yield from component_problems(schema.ComponentSection, part, key=f"{key}.{name}", optional=True)


def _more(group: str, values: dict[str, Any], model: type[schema.Section]) -> set[str]:
    """What else a section takes: the trainer any argument of Lightning's that a run does not set itself."""
    if group != "trainer" or values.keys() <= model.model_fields.keys():
        return set()
    return {*signature_of(TRAINER).kinds} - NOT_YOURS - model.model_fields.keys()


def check_search(cfg: DictConfig) -> None:
    """The same for what a search needs, which no single run of it could put right."""
    refuse(list(search(Values(plain(cfg)))))


def check_data(cfg: DictConfig) -> None:
    """The same for where the data of a checkpoint's configuration lies, and what is derived from it."""
    of = Values(plain(cfg, resolve=True))
    refuse([*files(of), *_places(of)])


def check_command(cfg: DictConfig, command: str) -> None:
    """The same for the few keys of a command that takes a checkpoint or finished runs, by the command's name."""
    values = plain(cfg, resolve=True)
    problems = [problem for _, problem in section_problems(COMMANDS[command], values)]
    if command == "export" and values.get("quantize") is True and values.get("format") == "torch":
        problems.append("quantize=true: eight bits are for format=onnx")
    refuse(problems)


def places(cfg: DictConfig, key: str) -> list[Path]:
    """The folders that `key` names, one or a list; a pattern such as `outputs/sweep/*seed_1*` names all that match. Raises
    ConfigError where one is missing."""
    value = cfg[key]
    named = [str(one) for one in (value if isinstance(value, ListConfig) else [value]) if one is not None]
    # Path.glob takes no pattern that begins at the root.
    found = [place for one in named for place in sorted(map(Path, glob.glob(one))) or [Path(one)]]  # noqa: PTH207
    if not found:
        raise ConfigError(f"{key} needs a value; write {key}=the folder of a run or a sweep")
    refuse([f"{key}={place}: no such folder" for place in found if not place.is_dir()])
    return found


def numbers(cfg: DictConfig, key: str, *, count: int) -> list[float]:
    """The weights that `key` lists, equal ones where it is null. Raises ConfigError where they do not fit `count`."""
    if cfg[key] is None:
        return [1.0] * count
    values = list(cfg[key]) if isinstance(cfg[key], ListConfig) else [cfg[key]]
    if len(values) != count or not all(isinstance(value, int | float) and value > 0 for value in values):
        raise ConfigError(f"{key}={cfg[key]}: wanted {count} numbers above 0, one for each member")
    return [float(value) for value in values]


def refuse(problems: list[str]) -> None:
    """Raise ConfigError where there are problems, a line each."""
    if len(problems) == 1:
        raise ConfigError(problems[0])
    if problems:
        raise ConfigError(f"{len(problems)} problems in the configuration:\n  " + "\n  ".join(problems))


def _places(of: Values) -> list[str]:
    places = {"paths.store": of["paths.store"]} if of.has("paths.store") else {}
    if HydraConfig.initialized():
        places["hydra.run.dir"] = run_folder()
    return outside(of["data.root"], places) if of.has("data.root") else []
