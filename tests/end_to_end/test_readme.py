"""Every command of the README and the docs is one that works: its script exists, its settings compose and are allowed."""

import re
import shlex
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import open_dict

from esc50.commands.cli import NAMES
from esc50.config.command_schema import COMMANDS as COMMANDS_WITHOUT_A_RUN
from esc50.config.door import check
from esc50.config.problems import fields_of

ROOT = Path(__file__).parents[2]
RUN_ELSEWHERE = "extend.md"  # by test_extend, with the files that it shows
DOCS = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name != RUN_ELSEWHERE]
PAGES = [ROOT / "README.md", *DOCS, *sorted((ROOT / "conf" / "experiment").glob("*.yaml"))]
SCRIPTS = {"inspect_data": "inspect", "find_lr": "find-lr", "profile_run": "profile"}  # named unlike their commands
COMMAND = re.compile(
    r"^[ #]*(?:.*&& )?((?:python (?:train|scripts/\w+)\.py|esc50 (?:" + "|".join(NAMES) + r")\b)[^#\n`|]*)", re.MULTILINE
)
COMMANDS = sorted({(page.name, match.strip()) for page in PAGES for match in COMMAND.findall(page.read_text("utf-8"))})


def command_of(words: list[str]) -> tuple[str, list[str]]:
    """The name of a command that is typed in one of its two ways, and its settings."""
    if words[0] == "esc50":
        return words[1], words[2:]
    assert (ROOT / words[1]).is_file()
    name = Path(words[1]).stem
    return SCRIPTS.get(name, name), words[2:]


def test_the_two_one_line_commands_open_the_readme():
    text = (ROOT / "README.md").read_text("utf-8")
    commands = re.findall(r'^    (pip install -e "\.\[dev\]" && \S+(?: train\.py experiment=quickstart)?)', text, re.M)
    assert commands[:2] == [
        'pip install -e ".[dev]" && python train.py experiment=quickstart',
        'pip install -e ".[dev]" && pytest',
    ]


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_commands_compose_and_are_allowed(page, command, tmp_path, monkeypatch):
    name, overrides = command_of(shlex.split(command))
    own = "--config-dir" in overrides  # options that the page tells how to write
    overrides = [override.replace("<time>", "time") for override in overrides]
    overrides = [override for override in overrides if "=" in override and not (own and override.startswith("model="))]
    keys = [override.partition("=")[0] for override in overrides]
    if name in COMMANDS_WITHOUT_A_RUN:
        known = fields_of(COMMANDS_WITHOUT_A_RUN[name])
        assert {key.partition(".")[0] for key in keys} <= {*known, "hydra"}
        return
    (tmp_path / "my_sounds").mkdir()
    monkeypatch.chdir(tmp_path)
    if "slow_pitch" in command:  # the module that the page shows
        (tmp_path / "slow_pitch.py").write_text("class SlowPitch:\n    pass\n", encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = "benchmark" if name == "benchmark" else "config"
        # Each value of a sweep on its own; the first stands for all, as they differ in nothing but the value.
        cfg = compose(config, [override.split(",")[0] for override in overrides])
    with open_dict(cfg):
        if not Path(cfg.data.root).is_dir() and cfg.data.get("creates") != cfg.data.root:
            cfg.data.root = "my_sounds"  # the reader's own path
        cfg.resume = cfg.scored_by = None
    check(cfg)
