"""The schema, `conf/` and the page of all settings say the same."""

import itertools
import re
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

from esc50.config import schema
from esc50.config.command_schema import COMMANDS
from esc50.config.problems import fields_of
from esc50.config.reference import comments, reference

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"


@pytest.fixture(scope="module")
def page() -> str:
    return reference()


def test_the_page_in_the_docs_is_the_one_that_is_written_now(page):
    assert (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8") == page


def test_every_key_on_the_page_has_limits_a_default_and_a_meaning(page):
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) > 200
    assert [row for row in rows if len(row) != 4 or not all(cell.strip() for cell in row)] == []


def test_the_page_names_every_option_of_every_group(page):
    for path in CONF.glob("*/*.yaml"):
        group, option = path.parent.name, path.stem
        assert f"### {group}={option}\n" in page or f"`{group}={option}`:" in page, path


def test_a_default_on_the_page_is_that_of_conf(page):
    assert "| `trainer.max_epochs` | a whole number of 1 or more | `50` | epochs |" in page
    assert re.search(r"\| `augment\.mix\.mixup\.alpha` \| a number of 0 or more \| `0\.2` \| .*beta distribution", page)


@pytest.mark.parametrize("path", sorted(CONF.rglob("*.yaml")), ids=lambda path: path.relative_to(CONF).as_posix())
def test_a_file_of_conf_says_what_it_is_and_how_it_is_used(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    opening = [line for line in itertools.takewhile(lambda line: line.startswith("#"), lines) if "@package" not in line]
    assert opening and len(opening[0]) > 20
    assert any(re.search(r"\besc50 [a-z-]+", line) for line in opening)


# ---------------------------------------------------------------------- schema and conf


def test_the_root_has_the_keys_of_the_schema(compose):
    assert set(compose()) == set(fields_of(schema.Run))
    assert set(compose(name="benchmark")) == set(fields_of(schema.Benchmark))


@pytest.mark.parametrize("group", [*schema.PLAIN, "features"])
def test_a_section_has_the_keys_of_the_schema(group, compose):
    options = sorted(path.stem for path in (CONF / group).glob("*.yaml")) or [None]
    for option in options:
        needs = ["model=audionet"] if option == "waveform" else []
        section = compose(*needs, *([f"{group}={option}"] if option else []))[group]
        model = schema.FEATURES[section.kind] if group == "features" else schema.PLAIN[group]
        assert set(section) == set(fields_of(model)), option


@pytest.mark.parametrize("group", schema.COMPONENTS)
def test_a_component_states_the_facts_of_the_schema(group, compose):
    facts = set(fields_of(schema.COMPONENTS[group]))
    for path in (CONF / group).glob("*.yaml"):
        section = OmegaConf.to_container(compose(f"{group}={path.stem}"))[group]
        assert facts <= set(section), path.stem


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_the_keys_of_the_schema(name):
    values = yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8"))
    assert set(values) - {"defaults", "hydra"} == set(fields_of(COMMANDS[name]))


def test_the_schema_has_no_defaults_of_its_own():
    models = [schema.Run, *schema.FEATURES.values(), *schema.PLAIN.values(), *schema.COMPONENTS.values(), *COMMANDS.values()]
    given = {name for model in models for name, field in fields_of(model).items() if not field.is_required()}
    assert given == set()


def test_comments_are_found_by_the_whole_key(tmp_path):
    path = tmp_path / "model" / "x.yaml"
    path.parent.mkdir()
    path.write_text("# heading\nmodel:\n  a: 1  # one\n  b:\n    c: '#2'\n    d: 3 # three\ne: 4\n", encoding="utf-8")
    assert comments(path) == {"model.a": "one", "a": "one", "model.b.d": "three", "b.d": "three"}
