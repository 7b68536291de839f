"""The program `esc50`: its commands, its help, its completion, and scripts that are the same."""

import ast
import sys
from importlib import metadata
from pathlib import Path

import pytest

from esc50.commands import cli
from esc50.config.command_schema import COMMANDS
from esc50.config.problems import fields_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def program(monkeypatch, capsys):
    """Call `esc50` within this process; returns its exit status, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["/somewhere/bin/esc50", *arguments])
        capsys.readouterr()
        status = 0
        try:
            cli.main()
        except SystemExit as end:
            status = end.code or 0
        return status, *capsys.readouterr()

    return run


def test_help_lists_every_command_with_a_line(program):
    for arguments in ([], ["--help"], ["-h"]):
        status, out, _ = program(*arguments)
        lines = [line.split(maxsplit=1) for line in out.splitlines() if line.startswith("    ")]
        told = {words[0]: words[1] for words in lines if words[0] in cli.NAMES}
        assert status == 0 and set(told) == set(cli.NAMES)
        assert all(len(text) > 15 and len(text) < 90 for text in told.values())


@pytest.mark.parametrize("name", ["predict", "evaluate", "explain", "export", "serve", "leaderboard", "compare", "ensemble"])
def test_help_of_a_command_says_what_each_key_means(name, program):
    status, out, _ = program(name, "--help")
    assert status == 0 and out.startswith(f"esc50 {name}: ")
    for key, field in fields_of(COMMANDS[name]).items():
        if key != "data":
            (line,) = (line for line in out.splitlines() if line.startswith(f"    {key}="))
            assert line.split(maxsplit=1)[1][:20] == field.description[:20]
    assert "powered by Hydra" not in out + program("train", "--help")[1]


def test_every_module_of_a_command_is_on_the_list():
    modules = {path.stem.replace("_", "-") for path in (ROOT / "src" / "esc50" / "commands").glob("*.py")}
    assert modules - {"--init--", "cli", "entry"} == set(cli.NAMES)


@pytest.mark.parametrize(("name", "advice"), [("trian", "did you mean train?"), ("xyz", "there are train, download,")])
def test_an_unknown_command_is_one_line(name, advice, program):
    status, _, err = program(name)
    assert status == 2 and err.startswith(f"error: esc50 {name}: no such command; ") and advice in err
    assert len(err.splitlines()) == 1


def test_the_version_is_that_of_the_package(program):
    assert program("--version") == (0, f"esc50 {metadata.version('esc50')}\n", "")


def test_a_mistake_in_the_configuration_is_one_line(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = program("train", "fold=6")
    assert (status, out, err) == (2, "", "error: fold=6: wanted a whole number from 1 to 5\n")
    assert program("find-lr", "fold=6")[0] == program("find_lr", "fold=6")[0] == 2
    assert program("configuration", "fold=6")[0] == 2


@pytest.mark.parametrize(
    ("line", "among"),
    [
        ("esc50 ", {"train", "find-lr"}),
        ("esc50 tr", {"train"}),
        ("esc50 train model=", {"model=melcnn", "model=audionet"}),
        ("esc50 train trainer.max_e", {"trainer.max_epochs="}),
        ("esc50 predict form", {"format="}),
    ],
)
def test_a_shell_is_told_how_a_line_may_go_on(line, among, program, monkeypatch):
    monkeypatch.setenv("COMP_LINE", line)
    status, out, _ = program("-sc", "query=bash")
    assert status == 0 and among <= set(out.split())


def test_a_shell_gets_a_function_for_the_program(program):
    status, out, _ = program("-sc", "install=bash")
    assert status == 0 and out.rstrip().endswith("-F hydra_bash_completion esc50")


@pytest.mark.parametrize("path", [ROOT / "train.py", *sorted((ROOT / "scripts").glob("*.py"))], ids=lambda path: path.stem)
def test_a_script_says_how_it_is_used_and_does_nothing_but_its_command(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert f"python {path.relative_to(ROOT).as_posix()}" in ast.get_docstring(tree)
    called = [node.args[0].value for node in ast.walk(tree) if isinstance(node, ast.Call)]
    expected = {"inspect_data": "inspect", "find_lr": "find-lr", "profile_run": "profile"}.get(path.stem, path.stem)
    assert called == [expected]
