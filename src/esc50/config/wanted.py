"""What a setting's type asks for, in words."""

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

from esc50.config.kinds import Wanted

PLAIN = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", dict: "keys below it", list: "a list"}


def wanted(kind: Any) -> str:
    """Such as "a whole number of 1 or more or null", for an annotation or a field of a model."""
    kind, limits, optional = parts(kind)
    words = next((limit.words for limit in limits if isinstance(limit, Wanted)), None)
    if words is None:
        choices = get_args(kind) if get_origin(kind) is Literal else None
        words = "one of " + ", ".join(map(str, choices)) if choices else PLAIN.get(get_origin(kind) or kind, "a value")
        words += _limits(limits, whole=kind is int)
    return words + (" or null" if optional else "")


def choices_of(kind: Any) -> tuple[str, ...]:
    """What a setting may be, where that is a list of names."""
    kind, _, _ = parts(kind)
    return get_args(kind) if get_origin(kind) is Literal else ()


def item_of(kind: Any) -> Any:
    """The kind of what a list or mapping holds."""
    kind, _, _ = parts(kind)
    return get_args(kind)[-1] if get_args(kind) else Any


def parts(kind: Any) -> tuple[Any, list[Any], bool]:
    """The type itself, its limits, and whether null will do, too."""
    limits: list[Any] = []
    optional = False
    while True:
        if isinstance(kind, FieldInfo):
            limits += kind.metadata
            kind = kind.annotation
        elif get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
            limits += [limit for one in more for limit in (one.metadata if isinstance(one, FieldInfo) else [one])]
        elif get_origin(kind) in (Union, types.UnionType) and type(None) in get_args(kind):
            optional = True
            others = [one for one in get_args(kind) if one is not type(None)]
            kind = others[0] if len(others) == 1 else Union[tuple(others)]  # noqa: UP007  made at run time
        else:
            return kind, limits, optional


def _limits(limits: list[Any], *, whole: bool) -> str:
    def number(value: float) -> str:
        return f"{value:.0f}" if whole else f"{value:g}"

    low, high, above, some = (next(_values(limits, kind), None) for kind in ("ge", "le", "gt", "min_length"))
    if some is not None:
        return f" of {'one' if some == 1 else some} or more"
    if low is not None and high is not None:
        return f" from {number(low)} to {number(high)}"
    if above is not None:
        return f" above {number(above)}" + (f" and up to {number(high)}" if high is not None else "")
    if low is not None:
        return f" of {number(low)} or more"
    return f" of {number(high)} or less" if high is not None else ""


def _values(limits: list[Any], name: str) -> Iterator[float]:
    kinds = {"ge": annotated_types.Ge, "le": annotated_types.Le, "gt": annotated_types.Gt, "min_length": annotated_types.MinLen}
    return (getattr(limit, name) for limit in limits if isinstance(limit, kinds[name]))
