"""Scale, filters and window are librosa's."""

import librosa
import numpy as np
import pytest

from esc50.features.mel import band_edges, hann_window, hz_to_mel, mel_filters, mel_to_hz

SHAPES = [(44100, 4096, 128, 0, 15000), (44100, 2048, 128, 0, 22050), (32000, 1024, 64, 50, 14000), (8000, 512, 32, 0, 4000)]


@pytest.mark.parametrize(("sample_rate", "n_fft", "n_mels", "f_min", "f_max"), SHAPES)
def test_filters_are_librosas(sample_rate, n_fft, n_mels, f_min, f_max):
    ours = mel_filters(sample_rate=sample_rate, n_fft=n_fft, n_mels=n_mels, f_min=f_min, f_max=f_max)
    theirs = librosa.filters.mel(sr=sample_rate, n_fft=n_fft, n_mels=n_mels, fmin=f_min, fmax=f_max, htk=False, norm="slaney")
    assert ours.dtype == np.float32 and ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-10)
    edges = librosa.mel_frequencies(n_mels=n_mels + 2, fmin=f_min, fmax=f_max)
    np.testing.assert_allclose(band_edges(n_mels=n_mels, f_min=f_min, f_max=f_max), edges, rtol=1e-12)


def test_the_scale_is_linear_to_a_kilohertz_and_logarithmic_above():
    np.testing.assert_allclose(hz_to_mel(np.array([0, 500, 1000, 6400])), [0, 7.5, 15, 42])
    hz = np.linspace(0, 22050, 1000)
    np.testing.assert_allclose(mel_to_hz(hz_to_mel(hz)), hz, atol=1e-9)


@pytest.mark.parametrize(("length", "size"), [(2205, 4096), (2048, 2048), (401, 512), (1, 4)])
def test_the_window_is_librosas_in_the_middle(length, size):
    theirs = librosa.util.pad_center(librosa.filters.get_window("hann", length), size=size)
    if length > 1:  # scipy gives a single sample the weight 1, which no spectrum is made of
        np.testing.assert_allclose(hann_window(length, size=size), theirs, atol=1e-7)
    assert hann_window(length, size=size).shape == (size,)
