"""What is wrong with the values of a section, key by key, in words."""

import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydantic import Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from esc50.config.kinds import OWN_WORDS
from esc50.config.schema import ComponentSection, Section
from esc50.config.signatures import NotThereError, Signature, signature_of
from esc50.config.wanted import choices_of, item_of, parts, wanted

NEEDED = "???"  # how a value is written that must be given
Problem = tuple[str, str]  # the whole key, and a line that begins with it


def section_problems(
    model: type[Section], values: dict[str, Any], *, key: str = "", also: Collection[str] = ()
) -> Iterator[Problem]:
    """Those of the section `key` (empty for the root), which should be as `model`; keys in `also` will do, too."""
    fields = fields_of(model)
    for name in [name for name, value in values.items() if value == NEEDED]:
        yield _whole(key, name), f"{_whole(key, name)} needs a value; write {_whole(key, name)}={_hint(fields.get(name))}"
    checked = {name: value for name, value in values.items() if value != NEEDED and name not in also}
    seen = {_whole(key, name) for name, value in values.items() if value == NEEDED}
    try:
        model.model_validate(checked)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            problem = _in_words(one["type"], one["loc"], one["input"], one["msg"], fields, key=key, also=also)
            if problem[0] not in seen:
                seen.add(problem[0])
                yield problem


def component_problems(
    model: type[ComponentSection], values: Any, *, key: str, given: Collection[str] = (), optional: bool = False
) -> Iterator[Problem]:
    """Those of a section that names what it configures: its facts are as `model` says, the other keys are arguments of that.
    `given` are the arguments that the program gives itself."""
    if not isinstance(values, dict):
        yield key, f"{_said(key, values)}: wanted keys below it" + (" or null" if optional else "")
        return
    target = values.get("_target_")
    try:
        signature = signature_of(target) if isinstance(target, str) and "." in target else None
    except NotThereError as error:
        yield f"{key}._target_", f"{key}._target_={target}: {error}; write the module's name, a dot and what it holds"
        return
    except SyntaxError as error:
        yield f"{key}._target_", f"{key}._target_={target}: {error.filename} line {error.lineno} is not Python ({error.msg})"
        return
    yield from section_problems(with_arguments(model, signature or Signature(), given), values, key=key)


def with_arguments(model: type[ComponentSection], signature: Signature, given: Collection[str]) -> type[ComponentSection]:
    """The model of a section whose target has this signature: its own keys and the arguments."""
    own = {*fields_of(model), *given}
    arguments: dict[str, Any] = {
        # A name of one's own would be taken for a private or a pydantic attribute; the alias is what people write.
        f"argument_{name}": (kind, Field(alias=name) if name in signature.required else Field(None, alias=name))
        for name, kind in signature.kinds.items()
        if name not in own
    }
    made = create_model(model.__name__, __base__=model, **arguments)
    if signature.is_open:
        made.model_config = {**made.model_config, "extra": "allow"}
        made.model_rebuild(force=True)
    return made


def fields_of(model: type[Section]) -> dict[str, FieldInfo]:
    """The fields of a model by the name that people write."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def no_such_key(key: str, name: str, known: Collection[str]) -> str:
    """The line for a key that is not there, with the nearest that is."""
    near = difflib.get_close_matches(name, known, n=1)
    advice = f"did you mean {_whole(key, near[0])}?" if near else f"there are {', '.join(sorted(known))}"
    return f"{_whole(key, name)}: no such key; {advice}"


def _in_words(
    kind: str,
    place: tuple[int | str, ...],
    value: Any,
    message: str,
    fields: Mapping[str, FieldInfo],
    *,
    key: str,
    also: Collection[str],
) -> Problem:
    name = str(place[0])
    whole = _whole(key, *map(str, place))
    if kind == "extra_forbidden" and len(place) == 1:
        return whole, no_such_key(key, name, {*(one for one in fields if one != "_target_"), *also})
    if kind == "missing":
        return whole, f"{whole} needs a value; write {whole}={_hint(fields.get(name))}"
    if kind == OWN_WORDS:
        return whole, f"{_said(whole, value)}: {message}"
    asked: Any = fields[name]
    inner, _, _ = parts(asked)
    if len(place) > 1 and isinstance(inner, type) and issubclass(inner, Section):
        return _in_words(kind, place[1:], value, message, fields_of(inner), key=_whole(key, name), also=())
    for _ in place[1:]:
        asked = item_of(asked)
    near = difflib.get_close_matches(str(value), choices_of(asked), n=1)
    return whole, f"{_said(whole, value)}: wanted {wanted(asked)}" + (f"; did you mean {near[0]}?" if near else "")


def _hint(field: FieldInfo | None) -> str:
    words = wanted(field) if field is not None else ""
    return words if words.startswith(("a run", "a folder", "an audio")) else "..."


def _said(key: str, value: Any) -> str:
    return f"{key}={'null' if value is None else value}"


def _whole(*names: str) -> str:
    return ".".join(name for name in names if name)
