"""The benchmark measures on the data it is given, by the way that training goes."""

import pytest

from esc50.benchmarks.step import EpochTimes
from esc50.benchmarks.suite import Suite
from esc50.training.quiet import quieten


@pytest.fixture
def suite(compose, tiny, tmp_path) -> Suite:
    places = [setting for setting in tiny if setting.startswith(("data", "paths."))]
    small = [setting for setting in tiny if setting.startswith(("features.", "model.channels"))]
    return Suite(compose(*places), lambda overrides: compose(*overrides, *small), tmp_path, data="folder")


def test_every_configuration_keeps_the_data_that_was_chosen(suite, sounds):
    cfg = suite.model("melcnn", "watch=none")
    assert cfg.data.root == str(sounds) and cfg.data._target_.endswith("read_folder")
    assert (len(suite.clips), suite.num_classes) == (30, 3)


def test_a_fit_trains_so_many_steps_on_the_clips_it_is_given(suite):
    quieten()
    times = EpochTimes()
    suite.fit(
        suite.model("melcnn", "watch=none", "trainer.max_epochs=2", "loader.batch_size=4"),
        [times],
        clips=suite.clips[:12],
        val=suite.clips[12:20],
    )
    assert len(times.seconds) == 2 and all(seconds > 0 for seconds in times.seconds)
