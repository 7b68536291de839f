"""The book's ways do what they are measured for, so that the comparison is one of like with like."""

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image

from esc50.benchmarks import book
from esc50.features.logmel import LogMelSpec, log_mel


@pytest.fixture
def clip(tmp_path):
    waveform = 0.3 * np.sin(2 * np.pi * 1000 * np.arange(44100) / 44100)
    soundfile.write(tmp_path / "tone.wav", waveform, 44100)
    return tmp_path / "tone.wav"


def test_the_books_spectrogram_is_ours_at_its_parameters(clip):
    spec = LogMelSpec(
        sample_rate=44100,
        n_fft=2048,
        win_length=2048,
        hop_length=512,
        n_mels=128,
        f_min=0,
        f_max=22050,
        db_min=-80,
        db_max=0,
        reference="clip",
    )
    waveform, _ = soundfile.read(clip, dtype="float32")
    np.testing.assert_allclose(log_mel(waveform, spec), book.mel_decibels(clip), atol=0.01)


def test_its_figure_has_320_by_240_pixels_with_white_borders(clip, tmp_path):
    book.FigureWriter()(clip, tmp_path / "figure.png")
    with Image.open(tmp_path / "figure.png") as figure:
        assert figure.size == (320, 240)
        assert np.asarray(figure.convert("L"))[0].min() == 255


def test_images_arrive_normalised_with_three_channels(clip, tmp_path):
    book.FigureWriter()(clip, tmp_path / "figure.png")
    assert book.from_png(tmp_path / "figure.png").shape == (3, 240, 320)
    assert book.on_the_fly(clip).shape == (3, 128, 87)


def test_masks_cover_one_axis(clip):
    image = torch.rand(1, 32, 64)
    masked = book.mask_time(image.clone(), max_width=8)
    changed = (masked != image).any(dim=(0, 1))
    assert 1 <= changed.sum() <= 8
    masked = book.mask_frequency(image.clone(), max_width=8)
    assert 1 <= (masked != image).any(dim=(0, 2)).sum() <= 8


def test_noise_keeps_size_and_mode():
    image = Image.fromarray(np.full((8, 9), 100, dtype=np.uint8))
    assert book.BadRandom()(image).size == (9, 8)
