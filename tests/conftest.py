"""What several tests need: the real recordings beside the project, where they are."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real data beside the project; tests that ask for it are skipped where it is absent."""
    if not (SHARED / "esc10").is_dir():
        pytest.skip("the folder ../shared with real recordings is not here")
    return SHARED
