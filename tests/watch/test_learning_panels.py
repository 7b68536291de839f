"""What is watched of the learning itself is complete, never runs back, and changes nothing."""

from itertools import pairwise

import pytest
import torch

from esc50.training.checkpoint_files import load_checkpoint

PANELS = ("learning_rates", "updates", "timing", "activations", "gradients")
# Masks, mixup, dropout and clipping: whatever draws or could be disturbed.
RICH = (
    "augment=strong",
    "augment.spectrogram.frequency_mask.max_width=4",
    "augment.spectrogram.time_mask.max_width=4",
    "model.dropout=0.3",
    "trainer.gradient_clip=0.1",
    "trainer.precision=float32",
)
LAYERS = ("stem", "blocks.0.1", "blocks.0.2", "head")
GROUPS = ("head", "late", "early")
A_STEP = {
    *(f"{kind}/{group}" for kind in ("lr", "momentum", "weight_decay") for group in GROUPS),
    "grad/norm",
    *(f"update/ratio_{group}" for group in GROUPS),
    *(f"activation/{layer}/{number}" for layer in LAYERS for number in ("mean", "std", "zeros")),
    *(f"grad/{layer}/{number}" for layer in LAYERS for number in ("min", "mean", "max")),
}
AN_EPOCH = {"time/data_seconds", "time/model_seconds", "time/wait_share", "time/examples_a_second"}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Sums come out the same only with as many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def seen(watched, tmp_path_factory):
    return watched(tmp_path_factory.mktemp("seen"), PANELS, *RICH)


def weights(folder) -> dict:
    return load_checkpoint(folder / "checkpoints" / "last.ckpt")["state_dict"]


def test_every_tag_is_there_once_a_step_or_epoch(seen, events):
    found = events(seen / "tensorboard")
    assert {
        tag
        for tag in found.scalars
        if tag.split("/")[0] in ("lr", "momentum", "weight_decay", "grad", "update", "activation", "time")
    } == A_STEP | AN_EPOCH
    for tag in A_STEP | AN_EPOCH:
        assert [step for step, _ in found.scalars[tag]] == ([2, 5] if tag in AN_EPOCH else list(range(6))), tag
    assert set(found.tags["histograms"]) == {f"{kind}/{layer}" for kind in ("activation", "grad") for layer in LAYERS}
    for tag in found.tags["histograms"]:
        assert [event.step for event in found.content.Histograms(tag)] == list(range(6))


def test_histograms_hold_all_values_of_a_small_layer_within_their_bounds(seen, events):
    found = events(seen / "tensorboard")
    for step, event in enumerate(found.content.Histograms("grad/head")):
        histogram = event.histogram_value
        assert histogram.num == sum(histogram.bucket) == 16 * 3 + 3
        assert histogram.min == pytest.approx(found.scalars["grad/head/min"][step][1])
        assert histogram.max == pytest.approx(found.scalars["grad/head/max"][step][1])
        assert histogram.sum / histogram.num == pytest.approx(found.scalars["grad/head/mean"][step][1], abs=1e-6)


def test_the_norm_is_that_before_clipping_and_of_all_layers(seen, events):
    norms = [value for _, value in events(seen / "tensorboard").scalars["grad/norm"]]
    assert min(norms) > 0.1, "the clipping at 0.1 should have something to do"


def test_watching_changes_nothing(seen, watched, tmp_path):
    blind = weights(watched(tmp_path, (), *RICH))
    assert blind.keys() == weights(seen).keys()
    for name, weight in weights(seen).items():
        assert torch.equal(weight, blind[name]), name


def test_curves_of_a_resumed_run_go_on_where_they_stopped(seen, watched, events, tmp_path):
    watched(tmp_path, PANELS, *RICH)
    watched(tmp_path, PANELS, *RICH, f"resume={tmp_path}", "trainer.max_epochs=3")
    scalars = events(tmp_path / "tensorboard").scalars
    for tag in A_STEP | AN_EPOCH:
        steps = [step for step, _ in scalars[tag]]
        assert all(before < after for before, after in pairwise(steps)), tag
        assert steps == ([2, 5, 8] if tag in AN_EPOCH else list(range(9))), tag


def test_several_batches_of_one_step_are_shown_as_one_step(watched, events, tmp_path):
    watched(tmp_path, PANELS, "trainer.accumulate=2", "trainer.precision=float32")
    scalars = events(tmp_path / "tensorboard").scalars
    for tag in A_STEP:
        assert [step for step, _ in scalars[tag]] == [0, 1, 2, 3], tag  # of three batches an epoch: two and one
