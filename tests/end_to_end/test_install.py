"""What is installed: what is imported and no more, ranges that resolve, and no version that people were hurt by."""

import ast
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from esc50.errors import EXTRAS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENTS = {requirement.name: requirement for requirement in map(Requirement, PROJECT["dependencies"])}
FOR_PEOPLE = {"benchmark", "explain", "export", "profile", "sweep", "timm", "web"}  # extras that bring something to do
# Not named, since what is named brings the version that fits it: package and who needs it.
BROUGHT = {"protobuf": "tensorboard", "pydantic-core": "pydantic", "starlette": "gradio"}


@pytest.mark.parametrize("version", ["2.6.2", "2.6.3"])
def test_the_compromised_releases_of_lightning_are_excluded(version):
    assert not REQUIREMENTS["lightning"].specifier.contains(version)
    assert metadata.version("lightning") != version


def test_hydra_stays_on_the_line_that_holds_omegaconf_back():
    assert REQUIREMENTS["hydra-core"].specifier.contains("1.3.8")
    assert not REQUIREMENTS["hydra-core"].specifier.contains("1.4.0")


def test_nothing_is_pinned_to_one_version():
    extras = [Requirement(text) for texts in PROJECT["optional-dependencies"].values() for text in texts]
    pinned = [
        str(one) for one in [*REQUIREMENTS.values(), *extras] if any(part.operator in ("==", "===") for part in one.specifier)
    ]
    assert pinned == []


def packages_of(extra: str) -> set[str]:
    """Names of the packages that an extra brings, those of other extras that it names too."""
    found = set()
    for requirement in map(Requirement, PROJECT["optional-dependencies"][extra]):
        found |= (
            {one for other in requirement.extras for one in packages_of(other)}
            if requirement.name == "esc50"
            else {requirement.name}
        )
    return found


def test_all_brings_every_extra_for_people_and_dev_brings_all():
    extras = PROJECT["optional-dependencies"]
    assert Requirement(extras["all"][0]).extras == FOR_PEOPLE and len(extras["all"]) == 1
    assert extras.keys() >= FOR_PEOPLE | {"all", "dev"}
    assert packages_of("dev") > packages_of("all") == {package for extra in FOR_PEOPLE for package in packages_of(extra)}


def test_what_a_plain_installation_lacks_is_named_with_the_extra_that_brings_it():
    assert {package: package in packages_of(extra) for package, extra in EXTRAS.items()} == dict.fromkeys(EXTRAS, True)
    assert not EXTRAS.keys() & REQUIREMENTS.keys()
    assert set(EXTRAS.values()) == FOR_PEOPLE


def imported(tree: ast.AST) -> set[str]:
    """Names of the packages that a module imports anywhere."""
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"esc50"}


@pytest.mark.parametrize("package", BROUGHT)
def test_what_is_not_named_is_brought_by_what_is(package):
    assert package in {canonicalize_name(Requirement(text).name) for text in metadata.requires(BROUGHT[package])}
    assert BROUGHT[package] in REQUIREMENTS or BROUGHT[package] in EXTRAS


def test_what_is_imported_is_declared_and_no_more_and_what_extras_bring_in_functions_only():
    distributions = metadata.packages_distributions()
    at_top, anywhere = set(), set()
    for path in ROOT.joinpath("src").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        anywhere |= imported(tree)
        at_top |= imported(ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], []))
    declared = {canonicalize_name(name) for name in REQUIREMENTS} | BROUGHT.keys()

    def unknown(names: set[str], known: set[str]) -> set[str]:
        return {name for name in names if not {canonicalize_name(one) for one in distributions.get(name, [name])} & known}

    assert unknown(at_top, declared) == set()
    assert unknown(anywhere, declared | EXTRAS.keys()) == set()
    brought = {canonicalize_name(one) for name in anywhere for one in distributions.get(name, [name])}
    assert {canonicalize_name(name) for name in REQUIREMENTS} - brought == set()


@pytest.mark.parametrize("gone", ["torchaudio.load", "torchaudio.info", "torchaudio.save", "sox_effects", "list_audio_backends"])
def test_nothing_uses_what_torchaudio_has_removed(gone):
    sources = ROOT.joinpath("src").rglob("*.py")
    users = [path.name for path in sources if gone in path.read_text(encoding="utf-8") and path.name != "book.py"]
    assert users == []
