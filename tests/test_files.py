"""A written file is whole or absent."""

import pytest

from esc50.files import write_atomically


def test_the_file_appears_only_when_the_block_ends(tmp_path):
    path = tmp_path / "new" / "folder" / "a.csv"
    with write_atomically(str(path)) as temporary:
        temporary.write_text("whole")
        assert temporary.parent == path.parent and temporary.suffix == ".csv"
        assert not path.exists()
    assert path.read_text() == "whole"
    assert list(path.parent.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), write_atomically(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_of_two_writers_at_once_the_last_to_finish_wins_whole(tmp_path):
    path = tmp_path / "a.csv"
    with write_atomically(path) as slow:
        slow.write_text("slow")
        with write_atomically(path) as quick:
            quick.write_text("quick")
        assert path.read_text() == "quick"
    assert path.read_text() == "slow"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["x" * 250 + ".png", "音" * 80 + ".png", "a b;c=[1].png"])
def test_any_name_that_the_disk_takes_can_be_written(tmp_path, name):
    with write_atomically(tmp_path / name) as temporary:
        temporary.write_text("whole")
    assert (tmp_path / name).read_text() == "whole"
