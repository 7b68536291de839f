"""What a constructor takes, read from its source: nothing is imported, so that a wrong key shows before torch is loaded."""

import ast
import importlib.util
import sys
import typing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from esc50.config import kinds

MOST_STEPS = 12  # from a name to what it stands for
# What an annotation may be made of for its meaning to be known here; configuration has no tuples, and paths are texts.
ALLOWED = (
    ast.Expression,
    ast.Name,
    ast.Load,
    ast.Subscript,
    ast.Constant,
    ast.Tuple,
    ast.BinOp,
    ast.BitOr,
    ast.UnaryOp,
    ast.USub,
    ast.Call,
    ast.keyword,
)
VOCABULARY = (
    {name: getattr(typing, name) for name in ("Annotated", "Any", "Literal", "Optional", "Union")}
    | {name: getattr(kinds, name) for name in dir(kinds) if name[0].isupper()}
    | {kind.__name__: kind for kind in (int, float, bool, str, list, dict)}
    | {"Path": str}
)


@dataclass(frozen=True)
class Signature:
    """The keywords of a function or class: each with its type as far as it is known, those that must be given, and whether
    any others are taken."""

    kinds: dict[str, Any] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    is_open: bool = True


class NotThereError(Exception):
    """A dotted name that means nothing here; the message is the part that is missing."""


@cache
def signature_of(target: str) -> Signature:
    """Of a dotted name such as `esc50.models.melcnn.MelCNN`; open where the source does not tell. Raises NotThereError."""
    found = _find(target, MOST_STEPS)
    if found is None:
        return Signature()
    node, module = found
    if isinstance(node, ast.ClassDef):
        return _of_class(node, module, MOST_STEPS)
    return _of_function(node, is_method=False) if isinstance(node, ast.FunctionDef) else Signature()


@dataclass(frozen=True)
class _Module:
    """A module's source: its dotted name, the package that relative imports start from, its tree."""

    name: str
    package: str
    tree: ast.Module


def _find(target: str, steps: int) -> tuple[ast.AST, _Module] | None:
    """The definition of a dotted name and the module it stands in; None where there is no Python source to read."""
    if steps == 0:
        return None
    path, package, names = _file_of(target)
    if path is None:
        return None
    name = ".".join(target.split(".")[: len(target.split(".")) - len(names)])
    module = _Module(name, package, _parsed(path))
    if len(names) != 1:
        return None
    for node in _statements(module.tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == names[0]:
            return node, module
        if (meant := _imported(node, names[0], module)) is not None:
            return _find(meant, steps - 1)
    if (
        any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in _statements(module.tree))
        or any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in module.tree.body)
        or _assigned(module.tree, names[0])
    ):
        return None
    raise NotThereError(f"{name} has no {names[0]}")


def _statements(tree: ast.Module) -> list[ast.stmt]:
    """Those of the module itself and of its ifs and tries, but not of its functions."""
    found = []
    for node in tree.body:
        found.append(node)
        for inner in ("body", "orelse", "handlers", "finalbody"):
            if isinstance(node, ast.If | ast.Try):
                found += [one for one in getattr(node, inner, []) if isinstance(one, ast.stmt)]
    return found


def _imported(node: ast.stmt, name: str, module: _Module) -> str | None:
    """The full name of what `name` is imported as by this statement, None where it is not."""
    if isinstance(node, ast.Import):
        return next((alias.name for alias in node.names if alias.asname == name), None)
    if not isinstance(node, ast.ImportFrom):
        return None
    base = node.module or ""
    if node.level:
        above = module.package.split(".")[: len(module.package.split(".")) - (node.level - 1)]
        base = ".".join([*above, *([node.module] if node.module else [])])
    return next((f"{base}.{alias.name}" for alias in node.names if (alias.asname or alias.name) == name), None)


def _assigned(tree: ast.Module, name: str) -> bool:
    return any(
        isinstance(target, ast.Name) and target.id == name
        for node in _statements(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
    )


def _file_of(target: str) -> tuple[Path | None, str, list[str]]:
    """The source file of a dotted name, its package, and what of the name is left to find inside."""
    top, *rest = target.split(".")
    spec = importlib.util.find_spec(top) if top not in sys.modules else sys.modules[top].__spec__
    if spec is None:
        raise NotThereError(f"no module named {top}")
    if not spec.origin or not spec.origin.endswith(".py"):
        return None, "", rest
    place, name = Path(spec.origin), top
    while rest and place.name == "__init__.py":
        inner = place.parent / rest[0]
        below = next((path for path in (inner / "__init__.py", inner.with_suffix(".py")) if path.is_file()), None)
        if below is None:
            break
        place, name = below, f"{name}.{rest.pop(0)}"
    if not rest:
        raise NotThereError(f"{target} is a module, not a class or function in it")
    return place, name if place.name == "__init__.py" else name.rpartition(".")[0], rest


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def _of_class(node: ast.ClassDef, module: _Module, steps: int) -> Signature:
    own = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    if own is not None:
        return _of_function(own, is_method=True)
    if node.decorator_list or not node.bases or steps == 0:
        return Signature()
    base = ast.unparse(node.bases[0])
    name, _, rest = base.partition(".")
    for one in _statements(module.tree):
        if isinstance(one, ast.ClassDef) and one.name == base:
            return _of_class(one, module, steps - 1)
        if (meant := _imported(one, name, module)) is not None:
            found = _find(f"{meant}.{rest}" if rest else meant, steps - 1)
            definition, place = found if found is not None else (None, module)
            return _of_class(definition, place, steps - 1) if isinstance(definition, ast.ClassDef) else Signature()
    return Signature()


def _of_function(node: ast.FunctionDef, *, is_method: bool) -> Signature:
    given = node.args
    positional = [*given.posonlyargs, *given.args][1 if is_method else 0 :]
    without = positional[: len(positional) - len(given.defaults)]
    without += [one for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
    return Signature(
        {one.arg: _kind(one.annotation) for one in [*positional, *given.kwonlyargs]},
        frozenset(one.arg for one in without),
        given.kwarg is not None,
    )


def _kind(annotation: ast.expr | None) -> Any:
    """The type that an annotation names, Any where it has other words than ours."""
    if annotation is None:
        return Any
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    expression = ast.Expression(annotation)
    known = all(
        isinstance(node, ALLOWED) and (not isinstance(node, ast.Name) or node.id in VOCABULARY) for node in ast.walk(expression)
    )
    return eval(compile(expression, "annotation", "eval"), {"__builtins__": {}}, dict(VOCABULARY)) if known else Any
