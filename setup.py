"""Puts the configuration, which lies in conf/ at the top of the repository, into the wheel as data of the package."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithConfiguration(build_py):
    """In an editable installation the configuration is read where it lies, so that no copy goes stale."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "esc50" / "conf"
            shutil.rmtree(target, ignore_errors=True)  # what an earlier build left
            shutil.copytree(Path(__file__).parent / "conf", target)


setup(cmdclass={"build_py": BuildWithConfiguration})
