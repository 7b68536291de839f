"""Every command of the README and the docs is one that works: its script exists, its settings compose and are allowed."""

import re
import shlex
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import open_dict

from esc50.config.door import check

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "conf" / "experiment").glob("*.yaml"))]
# Scripts that take no configuration of a run.
KEYS_OF = {
    "scripts/evaluate.py": {"checkpoint", "data.root", "shifts"},
    "scripts/leaderboard.py": {"runs"},
    "scripts/explain.py": {"checkpoint", "input", "class", "layer", "window", "hop", "rows"},
    "scripts/compare.py": {"a", "b"},
    "scripts/ensemble.py": {"runs", "weights"},
    "scripts/export.py": {"checkpoint", "format", "quantize", "input", "data.root"},
    "scripts/serve.py": {"checkpoint", "port", "host", "max_megabytes", "max_seconds"},
    "scripts/predict.py": {"checkpoint", "input", "format", "top", "window", "hop", "min_probability", "max_entropy"},
}
COMMAND = re.compile(r"^[ #]*(?:.*&& )?(python (?:train|scripts/\w+)\.py[^#\n`<]*)", re.MULTILINE)
COMMANDS = sorted({(page.name, match.strip()) for page in PAGES for match in COMMAND.findall(page.read_text("utf-8"))})


def test_the_two_one_line_commands_open_the_readme():
    text = (ROOT / "README.md").read_text("utf-8")
    commands = re.findall(r'^    (pip install -e "\.\[dev\]" && \S+(?: train\.py experiment=quickstart)?)', text, re.M)
    assert commands[:2] == [
        'pip install -e ".[dev]" && python train.py experiment=quickstart',
        'pip install -e ".[dev]" && pytest',
    ]


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_commands_compose_and_are_allowed(page, command, tmp_path, monkeypatch):
    _, script, *overrides = shlex.split(command)
    assert (ROOT / script).is_file()
    overrides = [override for override in overrides if override != "-m"]
    keys = [override.partition("=")[0] for override in overrides]
    if script in KEYS_OF:
        assert set(keys) <= KEYS_OF[script]
        return
    (tmp_path / "my_sounds").mkdir()
    monkeypatch.chdir(tmp_path)
    if "slow_pitch" in command:  # the module that the page shows
        (tmp_path / "slow_pitch.py").write_text("class SlowPitch:\n    pass\n", encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        name = "benchmark" if script == "scripts/benchmark.py" else "config"
        # Each value of a sweep on its own; the first stands for all, as they differ in nothing but the value.
        cfg = compose(name, [override.split(",")[0] for override in overrides])
    with open_dict(cfg):
        if not Path(cfg.data.root).is_dir() and cfg.data.get("creates") != cfg.data.root:
            cfg.data.root = "my_sounds"  # the reader's own path
        cfg.resume = cfg.scored_by = None
    check(cfg)
