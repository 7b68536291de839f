"""The house stands as drawn: a module imports only from rooms above it, and each room keeps to its own tools."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "esc50"
ROOMS = (
    "errors",
    "files",
    "config",
    "data",
    "features",
    "drawing",
    "augment",
    "batches",
    "models",
    "results",
    "training",
    "explain",
    "watch",
    "inference",
    "assembly",
    "runs",
    "benchmarks",
    "commands",
)
LOOSE = {"errors", "files", "drawing", "batches"}  # modules that are a room of their own
MODULES = sorted(PACKAGE.rglob("*.py"))
ENTRIES = sorted([ROOT / "train.py", *(ROOT / "scripts").glob("*.py")])
LONGEST = 250  # lines
LIGHT = {"esc50.commands.cli", *sys.stdlib_module_names}

# Who may know of a tool.
ONLY_IN = {
    "lightning": {"batches", "training", "watch", "assembly", "runs", "benchmarks"},
    "hydra": {"config", "assembly", "runs", "commands"},
    "pydantic": {"config", "data", "watch"},
    "gradio": {"inference"},
    "onnxruntime": {"inference"},
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(tree: ast.AST, *, names: bool = False) -> set[str]:
    """Absolute names of all modules that are imported anywhere in the tree, at the top or within functions; with `names` what
    is taken from a module, too, since it may be a module itself."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide which room they come from"
            found.add(node.module)
            if names or node.module == "esc50":
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in [*MODULES, *ENTRIES]}


def test_every_module_is_in_a_room_that_is_on_the_plan():
    assert len(MODULES) > 30
    assert {room_of(path) for path in MODULES} - {"__init__"} <= set(ROOMS)


def test_no_module_is_loose_but_those_on_the_plan():
    at_the_root = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert at_the_root == LOOSE


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_from_its_room_and_those_above(path, trees):
    if room_of(path) == "__init__":  # the door: what is behind it is imported by who enters
        at_top = [node for node in trees[path].body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert not any(name.startswith("esc50") for name in imports(ast.Module(at_top, [])))
        return
    here = ROOMS.index(room_of(path))
    below = {name for name in imports(trees[path]) if name.startswith("esc50.") and ROOMS.index(name.split(".")[1]) > here}
    assert not below, f"{name_of(path)} imports from below: {sorted(below)}"


def circle(imported: dict[str, set[str]]) -> list[str] | None:
    """Modules each of which imports the next, and the last the first; None where there are none."""
    state: dict[str, str] = {}

    def visit(name: str, way: list[str]) -> list[str] | None:
        if state.get(name) == "open":
            return way[way.index(name) :]
        if state.get(name) == "done":
            return None
        state[name] = "open"
        for other in sorted(imported.get(name, ())):
            if (found := visit(other, [*way, name])) is not None:
                return found
        state[name] = "done"
        return None

    return next((found for name in imported if (found := visit(name, [])) is not None), None)


def test_no_modules_import_each_other(trees):
    """Neither two nor more, across rooms or inside one, at the top of a module or in its functions."""
    own = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES}
    imported = {
        name: {other for other in imports(trees[path], names=True) if other in own and other not in (name, "esc50")}
        for name, path in own.items()
    }
    assert sum(map(len, imported.values())) > 300
    assert circle(imported) is None


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) is None
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]


@pytest.mark.parametrize("tool", ONLY_IN)
def test_a_tool_is_known_only_to_the_rooms_that_need_it(tool, trees):
    users = {
        room_of(path) for path in MODULES if any(name == tool or name.startswith(tool + ".") for name in imports(trees[path]))
    }
    assert users, f"nobody uses {tool}"
    assert users <= ONLY_IN[tool]


def test_a_tool_that_hides_below_is_found():
    """The checks above can fail."""
    tree = ast.parse("def f():\n    from lightning.pytorch import callbacks\n    import esc50.runs\nfrom esc50 import models")
    assert imports(tree) == {"lightning.pytorch", "esc50.runs", "esc50", "esc50.models"}
    assert "lightning.pytorch.callbacks" in imports(tree, names=True)
    with pytest.raises(AssertionError):
        imports(ast.parse("from . import run"))


@pytest.mark.parametrize("path", [*MODULES, *ENTRIES], ids=name_of)
def test_a_module_is_short_opens_with_one_line_saying_its_purpose_and_is_no_heap(path, trees):
    docstring = ast.get_docstring(trees[path])
    assert docstring, "no docstring"
    first_line = path.read_text(encoding="utf-8").splitlines()[0]
    assert first_line.startswith('"""') and len(first_line) > 10
    assert path.stem not in ("utils", "helpers", "common")
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_the_package_does_not_print(path, trees):
    names = [node for node in ast.walk(trees[path]) if isinstance(node, ast.Name) and node.id == "print"]
    assert not names


@pytest.mark.parametrize("path", ENTRIES, ids=name_of)
def test_an_entry_is_thin_and_imports_nothing_heavy_before_the_configuration_is_checked(path, trees):
    at_top = imports(ast.Module([node for node in trees[path].body if isinstance(node, ast.Import | ast.ImportFrom)], []))
    heavy = {name for name in at_top if name not in LIGHT and name.split(".")[0] not in LIGHT}
    assert not heavy
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 7


def test_nothing_passes_over_an_exception_in_silence(trees):
    """`except: pass` hides what went wrong; contextlib.suppress at least names what is expected."""
    silent = [
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(trees[path])
        if isinstance(node, ast.ExceptHandler)
        and all(
            isinstance(step, ast.Pass) or (isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant))
            for step in node.body
        )
    ]
    assert not silent
