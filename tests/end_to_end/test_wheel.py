"""The package works outside of its checkout: built, installed and used in an empty folder."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from esc50.commands.cli import NAMES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
NOT_SOURCES = {"data", "outputs", "build", "dist", "site"}  # at the top of a checkout


def files_of(folder: Path) -> set[str]:
    """Names below a folder, but for what Python derives."""
    found = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    return {path.as_posix() for path in found if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    place = tmp_path_factory.mktemp("built")
    checkout = place / "checkout"
    for path in ROOT.iterdir():
        if path.is_dir() and not path.name.startswith(".") and path.name not in NOT_SOURCES:
            shutil.copytree(path, checkout / path.name, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
        elif path.is_file():
            checkout.mkdir(exist_ok=True)
            shutil.copy(path, checkout)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(place / "dist"), str(checkout)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return place / "dist"


@pytest.fixture(scope="module")
def wheel(built) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """An environment that holds the wheel and, behind it, sees what the package depends on; this project's own checkout, which
    is installed by a file that only its own environment reads, is not among that."""
    place = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(place, with_pip=True, symlinks=os.name != "nt")
    python = place / "bin" / "python"
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (packages,) = place.glob("lib/python*/site-packages")
    others = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (packages / "others.pth").write_text("\n".join(others) + "\n", encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def esc50(environment, tmp_path_factory) -> Callable[..., subprocess.CompletedProcess]:
    """Type a command of the installed package in a folder that was empty."""
    folder = tmp_path_factory.mktemp("anywhere")

    def run(*arguments: str, program: str = "esc50") -> subprocess.CompletedProcess:
        done = subprocess.run(
            [environment / "bin" / program, *arguments],
            cwd=folder,
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done

    run.folder = folder  # type: ignore[attr-defined]
    return run


@pytest.fixture(scope="module")
def trained(esc50, environment) -> Path:
    """The folder of a short first run; not to be written into."""
    before = files_of(environment)
    esc50("train", "experiment=quickstart", "data.num_clips=50", "trainer.max_epochs=2", "trainer=cpu")
    assert files_of(environment) == before
    (run,) = (esc50.folder / "outputs" / "train").iterdir()
    return run


def test_an_index_of_packages_would_take_both_files_without_a_warning(built):
    files = sorted(built.iterdir())
    assert [path.name.removeprefix(f"esc50-{metadata.version('esc50')}") for path in files] == ["-py3-none-any.whl", ".tar.gz"]
    done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASSED") == 2


def test_the_wheel_holds_the_package_with_its_configuration_and_nothing_else(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    sources = {f"esc50/{name}" for name in files_of(ROOT / "src" / "esc50")}
    assert names == sources | {f"esc50/conf/{name}" for name in files_of(ROOT / "conf")}
    assert names >= {
        "esc50/conf/config.yaml",
        "esc50/conf/watch/panels/curves.yaml",
        "esc50/py.typed",
        "esc50/results/published.csv",
    }


def test_the_sdist_holds_what_the_wheel_is_made_of_and_no_tests(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {"LICENSE", "README.md", "pyproject.toml", "setup.py", *(f"conf/{name}" for name in files_of(ROOT / "conf"))}
    assert {name.partition("/")[0] for name in names} & {"tests", "docs", "data", "outputs"} == set()


def test_an_editable_installation_reads_the_configuration_where_it_lies(built, tmp_path):
    checkout = built.parent / "checkout"
    program = "import sys; from setuptools import build_meta; build_meta.build_editable(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", program, tmp_path], cwd=checkout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (editable,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(editable) as archive:
        (link,) = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert archive.read(link).decode().strip() == str(checkout / "src")
    assert not [path for path in checkout.rglob("conf") if path != checkout / "conf"]


def test_what_is_installed_is_used_and_not_the_checkout(esc50, environment):
    told = esc50(
        "-c", "import esc50, esc50.config.composing as c; print(esc50.__file__); print(c.conf_folder())", program="python"
    )
    package, conf = map(Path, told.stdout.splitlines())
    assert package.is_relative_to(environment) and conf == package.parent.resolve() / "conf"
    assert esc50("--version").stdout == f"esc50 {metadata.version('esc50')}\n"


def test_help_has_a_line_for_each_command(esc50):
    lines = esc50("--help").stdout.splitlines()
    said = {name: [line.split(maxsplit=1)[1] for line in lines if line.split()[:1] == [name]] for name in NAMES}
    assert {name: len(texts) for name, texts in said.items()} == dict.fromkeys(NAMES, 1)
    assert all(len(text) > 20 for (text,) in said.values())


@pytest.mark.parametrize("name", NAMES)
def test_each_command_has_help_and_leaves_nothing(name, esc50):
    before = files_of(esc50.folder)
    assert len(esc50(name, "--help").stdout.splitlines()) > 2
    assert files_of(esc50.folder) == before


def test_a_run_leaves_data_and_outputs_where_it_was_started(trained, esc50):
    assert {path.name for path in esc50.folder.iterdir()} == {"data", "outputs"}
    assert (esc50.folder / "data" / "synthetic" / "meta" / "esc50.csv").is_file()
    metrics = json.loads((trained / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["clips"] == 10 and metrics["versions"]["esc50"] == metadata.version("esc50")


def test_an_evaluation_gives_the_same_accuracy(trained, esc50):
    esc50("evaluate", f"checkpoint={trained}", "hydra.run.dir=outputs/again")
    again = esc50.folder / "outputs" / "again"
    assert (again / "predictions.csv").read_bytes() == (trained / "predictions.csv").read_bytes()
    first, second = (json.loads((place / "metrics.json").read_text(encoding="utf-8")) for place in (trained, again))
    assert first["test_accuracy"] == second["test_accuracy"]


def test_the_trained_model_labels_a_recording(trained, esc50):
    recording = sorted((esc50.folder / "data" / "synthetic" / "audio").iterdir())[0]
    (row,) = map(
        json.loads, esc50("predict", f"checkpoint={trained}", f'input="{recording}"', "format=jsonl").stdout.splitlines()
    )
    assert row["file"] == str(recording) and 0.1 <= row["probability"] <= 1


def test_the_run_has_its_row_on_a_leaderboard(trained, esc50):
    accuracy = json.loads((trained / "metrics.json").read_text(encoding="utf-8"))["test_accuracy"]
    told = esc50("leaderboard", "runs=outputs/train").stdout
    assert f"| **{100 * accuracy:.2f}** |" in told
    assert (next((esc50.folder / "outputs" / "leaderboard").iterdir()) / "leaderboard.csv").is_file()
