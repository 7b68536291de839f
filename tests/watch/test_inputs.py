"""The first batch is shown as training sees it: masks, mixtures and noise, and the sound of what is augmented as sound."""

import io

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image

from esc50.assembly.data import build_clips, build_recipe, build_rows
from esc50.features.front_end import FrontEnd
from esc50.features.logmel import LogMelSpec
from esc50.features.recipe import Recipe
from esc50.runs import train as run
from esc50.training.checkpoint_files import load_checkpoint
from esc50.training.task import Classifier
from esc50.watch import inputs
from esc50.watch.inputs import draw_inputs, mixtures

PANEL = ("watch=none", "+watch/panels@watch.inputs=inputs", "watch.inputs.num_clips=4", "trainer.max_epochs=1")
MASKS = ("augment=specaugment", "augment.spectrogram.specaugment.F=8", "augment.spectrogram.specaugment.T=12")
WAVES = ("features=waveform", "model=audionet", "augment=strong_waveform")
RATE = 8000


@pytest.fixture
def augmented(monkeypatch) -> list:
    """What `Classifier.augmented` returned, call by call: the panel asks first, then the first training step."""
    calls = []
    original = Classifier.augmented

    def recorded(task, batch, draws):
        calls.append((*original(task, batch, draws), batch))
        return calls[-1][:2]

    monkeypatch.setattr(Classifier, "augmented", recorded)
    return calls


@pytest.fixture
def drawn(monkeypatch) -> list:
    """The figures that were drawn."""
    figures = []
    original = inputs.draw_inputs
    monkeypatch.setattr(inputs, "draw_inputs", lambda *given: figures.append(original(*given)) or figures[-1])
    return figures


def sounds_in(content, kind: str) -> list[np.ndarray]:
    tags = sorted(tag for tag in content.Tags()["audio"] if tag.startswith(f"input/{kind}/"))
    read = [soundfile.read(io.BytesIO(content.Audio(tag)[0].encoded_audio_string), dtype="float32") for tag in tags]
    assert {rate for _, rate in read} == {RATE}
    return [sound for sound, _ in read]


def test_the_pictures_are_what_the_first_step_trains_on(compose, tiny, tmp_path, augmented, drawn):
    run.train(
        compose(
            *tiny,
            *PANEL,
            *MASKS,
            "+augment.spectrogram.noise._target_=esc50.augment.spectrogram.PixelNoise",
            "+augment.spectrogram.noise.level=0.05",
        ),
        tmp_path,
    )
    shown, trained = augmented[0], augmented[1]
    assert len(augmented) == 1 + 3  # the panel once, then a call a step
    torch.testing.assert_close(shown[0], trained[0], rtol=0, atol=0)
    for panel, image in zip(drawn[0].axes[:4], trained[0][:4], strict=True):
        np.testing.assert_array_equal(panel.images[0].get_array(), image[0].numpy())


def test_a_masked_band_is_a_flat_stripe_in_the_picture(compose, tiny, tmp_path, augmented, drawn):
    overrides = (*tiny, *PANEL, *MASKS, "augment.spectrogram.specaugment.T=0", "augment.spectrogram.specaugment.m_F=1")
    run.train(compose(*overrides), tmp_path)
    cfg = compose(*overrides)
    clips = build_clips(cfg)
    indices = augmented[0][2]["index"][:4].tolist()
    stored = build_rows(cfg, clips, build_recipe(cfg)).take(indices)
    flat = np.array([panel.images[0].get_array().data.std(axis=1) < 1e-6 for panel in drawn[0].axes[:4]])
    unmasked = np.array([image.std(axis=1) < 1e-6 for image in stored.astype(float)])
    assert not unmasked.any()
    assert flat.any(axis=1).sum() >= 2  # a width of 0 is drawn too, one time in nine
    for image in flat[flat.any(axis=1)]:
        masked = np.flatnonzero(image)
        assert len(masked) <= 8 and len(masked) == masked[-1] - masked[0] + 1


def test_titles_name_the_classes_and_their_shares(compose, tiny, tmp_path, augmented, drawn):
    run.train(compose(*tiny, *PANEL, "augment=mixup"), tmp_path)
    names = ("hiss", "hum", "whistle")
    titles = [panel.get_title(loc="left") for panel in drawn[0].axes[:4]]
    assert any("+ " in title for title in titles)
    for n, (title, probs) in enumerate(zip(titles, augmented[1][1], strict=False), start=1):
        assert title.startswith(f"{n}. ")
        for name, prob in zip(names, probs.tolist(), strict=True):
            assert (name in title) == (prob >= 0.005)
            assert 0.005 <= prob < 0.995 or f"% {name}" not in title
            assert f"% {name}" not in title or f"{100 * prob:.0f} % {name}" in title


def test_mixtures_by_hand():
    probs = np.array([[0, 1, 0], [0.27, 0, 0.73], [0.999, 0.001, 0]])
    assert mixtures(probs, ("cat", "dog", "owl")) == ["dog", "73 % owl\n+ 27 % cat", "cat"]


def test_spectrograms_come_with_the_sound_of_the_original_clips(compose, tiny, tmp_path, augmented, events):
    cfg = compose(*tiny, *PANEL, *MASKS)
    run.train(cfg, tmp_path)
    content = events(tmp_path / "tensorboard").content
    assert not any(tag.startswith("input/sounds/") for tag in content.Tags()["audio"])
    clips, recipe = build_clips(cfg), build_recipe(cfg)
    sounds = sounds_in(content, "sounds_original")
    assert len(sounds) == 4
    for sound, index in zip(sounds, augmented[1][2]["index"].tolist(), strict=False):
        np.testing.assert_allclose(sound, recipe.read(clips[index].path), atol=2 / 32768)


@pytest.mark.parametrize("normalize", ["none", "train"])
def test_of_a_waveform_network_the_augmented_input_is_heard(compose, tiny, tmp_path, augmented, events, normalize):
    overrides = [
        part for part in tiny if not part.startswith(("features.f_max", "features.n_", "features.win", "features.hop", "model."))
    ]
    run.train(compose(*overrides, *PANEL, *WAVES, f"features.normalize={normalize}"), tmp_path)
    state = load_checkpoint(tmp_path / "checkpoints" / "last.ckpt")["state_dict"]
    trained = augmented[1][0][:4]
    if normalize == "train":
        trained = trained * state["front_end.std"] + state["front_end.mean"]
    sounds = sounds_in(events(tmp_path / "tensorboard").content, "sounds")
    np.testing.assert_allclose(np.stack(sounds), trained.numpy().clip(-1, 1), atol=2 / 32768)


def test_of_a_log_mel_on_the_device_the_augmented_samples_are_heard(compose, tiny, tmp_path, events, monkeypatch):
    transformed = []
    original = FrontEnd.spectrogram
    monkeypatch.setattr(FrontEnd, "spectrogram", lambda front_end, x: (transformed.append(x.clone()), original(front_end, x))[1])
    run.train(compose(*tiny, *PANEL, "features=logmel", "augment=strong_waveform", "features.normalize=none"), tmp_path)
    content = events(tmp_path / "tensorboard").content
    expected = transformed[0][:4]
    torch.testing.assert_close(transformed[1][:4], expected, rtol=0, atol=0)  # the panel's, then the first step's
    np.testing.assert_allclose(np.stack(sounds_in(content, "sounds")), expected.numpy().clip(-1, 1), atol=2 / 32768)


def test_the_panel_changes_nothing_of_the_training(compose, tiny, tmp_path):
    for name, watch in (("with", PANEL), ("without", ("watch=none", "trainer.max_epochs=1"))):
        run.train(compose(*tiny, *watch, *MASKS, "model.dropout=0.3"), tmp_path / name)
    weights = [load_checkpoint(tmp_path / name / "checkpoints" / "last.ckpt")["state_dict"] for name in ("with", "without")]
    for key, value in weights[0].items():
        torch.testing.assert_close(value, weights[1][key], rtol=0, atol=0)


def test_it_is_written_once_where_training_starts_and_where_it_goes_on(compose, tiny, tmp_path, events):
    settings = (*tiny, *PANEL[:-1], "schedule=constant")
    run.train(compose(*settings, "trainer.max_epochs=2"), tmp_path)
    run.train(compose(*settings, "trainer.max_epochs=4", f"resume={tmp_path}"), tmp_path)
    content = events(tmp_path / "tensorboard").content
    assert [event.step for event in content.Images("input/pictures")] == [0, 6]
    assert [event.step for event in content.Audio("input/sounds_original/1")] == [0, 6]


def test_while_the_body_is_frozen_it_shows_what_the_body_got(compose, tiny, tmp_path, augmented, drawn):
    cfg = compose(*tiny, *PANEL, "trainer.freeze_epochs=1", "features.normalize=none")
    run.train(cfg, tmp_path)
    assert len(augmented) == 1  # training reuses embeddings
    rows = build_rows(cfg, build_clips(cfg), build_recipe(cfg)).take(augmented[0][2]["index"][:4].tolist())
    for panel, image in zip(drawn[0].axes[:4], rows, strict=True):
        np.testing.assert_allclose(panel.images[0].get_array(), image / 255, atol=1e-6)


def test_the_picture_has_the_size_of_its_panels_and_is_not_blank(compose, tiny, tmp_path, events):
    run.train(compose(*tiny, *PANEL, *MASKS), tmp_path)
    (event,) = events(tmp_path / "tensorboard").content.Images("input/pictures")
    image = np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))
    assert image.shape == (event.height, event.width, 3) == (340, 1400, 3)
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 100


@pytest.mark.parametrize("broken", [np.full((1, 3, 32, 20), np.nan), np.zeros((1, 3, 32, 20))], ids=["nan", "constant"])
def test_an_input_that_is_broken_or_flat_can_still_be_seen(broken):
    mel = LogMelSpec(
        sample_rate=RATE, n_fft=512, win_length=400, hop_length=160, n_mels=32, f_min=0, f_max=4000, db_min=-70, db_max=40
    )
    front_end = FrontEnd(Recipe(kind="mel_png", sample_rate=RATE, seconds=0.5, mel=mel), normalization="imagenet")
    panel = draw_inputs(broken, None, ["1. dog"], front_end).axes[0]
    assert panel.images[0].get_array().shape == (32, 20)
    assert panel.get_title(loc="left") == "1. dog"
