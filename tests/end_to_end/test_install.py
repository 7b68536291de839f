"""The dependencies that people were hurt by: ranges that resolve, and versions that must never be installed."""

import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENTS = {requirement.name: requirement for requirement in map(Requirement, PROJECT["dependencies"])}


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


def test_dev_brings_every_other_extra():
    own = next(Requirement(text) for text in PROJECT["optional-dependencies"]["dev"] if text.startswith("esc50"))
    assert own.extras == set(PROJECT["optional-dependencies"]) - {"dev"}


@pytest.mark.parametrize("gone", ["torchaudio.load", "torchaudio.info", "torchaudio.save", "sox_effects", "list_audio_backends"])
def test_nothing_uses_what_torchaudio_has_removed(gone):
    sources = Path(__file__).parents[2].joinpath("src").rglob("*.py")
    users = [path.name for path in sources if gone in path.read_text(encoding="utf-8") and path.name != "book.py"]
    assert users == []
