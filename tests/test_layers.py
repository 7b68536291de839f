"""The house stands as drawn: a module imports only from rooms above it, and each room keeps to its own tools."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "esc50"
ROOMS = ("errors", "files", "rules", "relations", "config", "data", "features", "drawing", "augment", "batches", "models",
         "results", "training", "explain", "watch", "benchmarks", "build", "inference", "testing", "run", "stages", "resuming",
         "distributed", "sweeping", "sweep_summary", "profiling", "suite")
MODULES = sorted(PACKAGE.rglob("*.py"))
ENTRIES = sorted([ROOT / "train.py", *(ROOT / "scripts").glob("*.py")])
LONGEST = 250  # lines
LIGHT = {"esc50.config", "hydra", "omegaconf", *sys.stdlib_module_names}

# Who may know of a tool, or of a room that is nobody else's business.
ONLY_IN = {
    "lightning": {"batches", "training", "watch", "build", "testing", "run", "stages", "benchmarks"},
    "hydra": {"config", "build", "sweep_summary"},
    "omegaconf": {"config", "build", "testing", "run", "stages", "suite", "resuming", "distributed", "sweeping", "sweep_summary"},
    "esc50.rules": {"config"},
    "esc50.relations": {"config"},
    "esc50.config": {"build", "testing", "stages", "distributed", "sweeping"},
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(tree: ast.AST) -> set[str]:
    """Absolute names of all modules that are imported anywhere in the tree, at the top or within functions."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide which room they come from"
            found.add(node.module)
            if node.module == "esc50":  # from esc50 import run
                found |= {f"esc50.{alias.name}" for alias in node.names}
    return found


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in [*MODULES, *ENTRIES]}


def test_every_module_is_in_a_room_that_is_on_the_plan():
    assert len(MODULES) > 30
    assert {room_of(path) for path in MODULES} - {"__init__"} <= set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_from_its_room_and_those_above(path, trees):
    if room_of(path) == "__init__":  # the door: what is behind it is imported by who enters
        at_top = [node for node in trees[path].body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert not any(name.startswith("esc50") for name in imports(ast.Module(at_top, [])))
        return
    here = ROOMS.index(room_of(path))
    below = {name for name in imports(trees[path])
             if name.startswith("esc50.") and ROOMS.index(name.split(".")[1]) > here}
    assert not below, f"{name_of(path)} imports from below: {sorted(below)}"


@pytest.mark.parametrize("tool", ONLY_IN)
def test_a_tool_is_known_only_to_the_rooms_that_need_it(tool, trees):
    users = {room_of(path) for path in MODULES
             if any(name == tool or name.startswith(tool + ".") for name in imports(trees[path]))}
    assert users, f"nobody uses {tool}"
    assert users <= ONLY_IN[tool]


def test_a_tool_that_hides_below_is_found():
    """The checks above can fail."""
    tree = ast.parse("def f():\n    from lightning.pytorch import callbacks\n    import esc50.run\nfrom esc50 import stages")
    assert imports(tree) == {"lightning.pytorch", "esc50.run", "esc50", "esc50.stages"}
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
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 60


def test_nothing_passes_over_an_exception_in_silence(trees):
    """`except: pass` hides what went wrong; contextlib.suppress at least names what is expected."""
    silent = [f"{name_of(path)}:{node.lineno}" for path in MODULES for node in ast.walk(trees[path])
              if isinstance(node, ast.ExceptHandler)
              and all(isinstance(step, ast.Pass) or (isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant))
                      for step in node.body)]
    assert not silent
