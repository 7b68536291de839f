"""The log-mel spectrogram: what tones, noise and silence become, the same on the CPU and on the device."""

from dataclasses import replace

import librosa
import numpy as np
import pytest
import torch

from esc50.data import audio
from esc50.features.device_logmel import LogMel
from esc50.features.logmel import LogMelSpec, log_mel, to_decibels, to_levels

RATE = 44100  # Hz
SPEC = LogMelSpec(
    sample_rate=RATE, n_fft=4096, win_length=2205, hop_length=441, n_mels=128, f_min=0, f_max=15000, db_min=-70, db_max=40
)
CLIP = replace(SPEC, reference="clip", db_min=-80, db_max=0)
LIBROSA = LogMelSpec(
    sample_rate=22050, n_fft=2048, win_length=2048, hop_length=512, n_mels=128, f_min=0, f_max=11025, db_min=-100, db_max=100
)
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
both_references = pytest.mark.parametrize("spec", [SPEC, CLIP], ids=("full_scale", "clip"))


def tone(*frequencies: float, seconds: float = 0.5, rate: int = RATE, amplitude: float = 0.5) -> np.ndarray:
    time = np.arange(round(seconds * rate)) / rate
    return sum(amplitude * np.sin(2 * np.pi * frequency * time) for frequency in frequencies).astype(np.float32)


def noise(*, seconds: float = 0.5, amplitude: float = 0.1, seed: int = 0, rate: int = RATE) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, amplitude, round(seconds * rate)).astype(np.float32)


def on_device(waveform: np.ndarray, spec: LogMelSpec, device: str = "cpu") -> np.ndarray:
    return LogMel(spec).to(device)(torch.from_numpy(waveform).to(device)[None])[0, 0].cpu().numpy()


def inner(image: np.ndarray) -> np.ndarray:
    """The frames whose window lies wholly inside the clip."""
    return image[:, 8:-8]


@pytest.mark.parametrize("frequency", [100, 440, 1000, 3000, 9000])
def test_a_tone_is_loudest_in_the_band_whose_centre_is_nearest(frequency):
    image = inner(log_mel(tone(frequency), SPEC))
    nearest = int(np.abs(SPEC.mel_frequencies() - frequency).argmin())
    assert (image.argmax(axis=0) == nearest).all()


@pytest.mark.parametrize("band", [2, 7, 11, 19])
def test_a_tone_at_the_centre_of_a_band_lights_that_band_alone(band):
    spec = replace(SPEC, n_mels=24)
    image = inner(log_mel(tone(spec.mel_frequencies()[band]), spec))
    assert set(np.nonzero(image > image.max() - 10)[0]) == {band}


def test_what_lies_far_from_a_tone_stays_at_the_floor():
    image, centres = inner(log_mel(tone(1000), SPEC)), SPEC.mel_frequencies()
    assert (image[(centres < 500) | (centres > 2000)] < image.max() - 60).all()


def test_two_tones_light_two_bands():
    image = inner(log_mel(tone(440, 5000), SPEC)).mean(axis=1)
    peaks = [band for band in range(1, 127) if image[band] > max(image[band - 1], image[band + 1], image.max() - 10)]
    assert peaks == [int(np.abs(SPEC.mel_frequencies() - frequency).argmin()) for frequency in (440, 5000)]


@pytest.mark.parametrize("samples", [220500, 441 * 3, 441 * 3 - 1, 100])
def test_there_is_a_frame_every_hop_and_one_at_the_start(samples):
    waveform = np.zeros(samples, dtype=np.float32)
    spec = replace(SPEC, n_fft=64, win_length=64, n_mels=4)
    frames = 1 + samples // 441
    assert spec.num_frames(samples) == frames
    assert log_mel(waveform, spec).shape == (4, frames)
    assert LogMel(spec)(torch.zeros(2, samples)).shape == (2, 1, 4, frames)


def test_it_is_librosas_with_its_defaults():
    waveform = noise(rate=22050) + tone(700, rate=22050)
    power = librosa.feature.melspectrogram(y=waveform, sr=22050)
    assert log_mel(waveform, LIBROSA) == pytest.approx(librosa.power_to_db(power, top_db=None), abs=1e-3)


def test_it_is_librosas_relative_to_the_loudest_point():
    waveform = noise(rate=22050) + tone(700, rate=22050)
    power = librosa.feature.melspectrogram(y=waveform, sr=22050)
    spec = replace(LIBROSA, reference="clip", db_min=-80, db_max=0)
    assert log_mel(waveform, spec) == pytest.approx(librosa.power_to_db(power, ref=np.max, top_db=80), abs=1e-3)


@both_references
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
@pytest.mark.parametrize(
    "name, waveform",
    [
        ("noise", noise()),
        ("quiet noise", noise(amplitude=1e-3)),
        ("full scale", np.sign(noise())),
        ("tone", tone(1000)),
        ("tones in noise", tone(60, 440, 12000, amplitude=0.1) + noise(amplitude=1e-4)),
        ("silence", 0 * noise()),
        ("click", np.eye(1, 22050, 9000, dtype=np.float32)[0]),
        ("half silence", noise() * (np.arange(22050) < 11025)),
    ],
)
def test_function_and_module_agree(name, waveform, device, spec):
    waveform = waveform.astype(np.float32)
    function, module = log_mel(waveform, spec), on_device(waveform, spec, device)
    assert function.dtype == module.dtype == np.float32
    assert function.shape == module.shape
    assert np.abs(function - module).max() < 0.05, name


@both_references
def test_function_and_module_agree_on_real_recordings(shared, spec):
    paths = sorted((shared / "esc10" / "audio").glob("*.ogg"))[::50]
    assert len(paths) == 8
    module = LogMel(spec)
    for path in paths:
        waveform = audio.read(path, sample_rate=RATE, num_samples=RATE)
        device = module(torch.from_numpy(waveform)[None])[0, 0].numpy()
        assert np.abs(log_mel(waveform, spec) - device).max() < 0.05, path.name


def test_a_batch_is_its_examples_one_by_one():
    batch = np.stack([noise(), tone(440), noise(amplitude=1e-3, seed=1), 0 * noise()])
    for spec in (SPEC, CLIP):
        together = LogMel(spec)(torch.from_numpy(batch))
        for waveform, image in zip(batch, together, strict=True):
            assert image[0].numpy() == pytest.approx(on_device(waveform, spec), abs=1e-3)


@both_references
def test_silence_is_the_floor_and_never_the_ceiling(spec):
    """librosa.power_to_db of silence with ref=np.max is 0 dB everywhere, the loudest level."""
    silence = np.zeros(RATE // 2, dtype=np.float32)
    assert librosa.power_to_db(np.zeros((2, 2)), ref=np.max).max() == 0
    assert (log_mel(silence, spec) == spec.db_min).all()
    assert (on_device(silence, spec) == spec.db_min).all()
    assert (to_levels(log_mel(silence, spec), spec) == 0).all()


def test_the_loudest_point_of_a_clip_is_its_reference():
    for waveform in (noise(), noise(amplitude=1e-3), tone(440)):
        assert log_mel(waveform, CLIP).max() == 0
        assert on_device(waveform, CLIP).max() == 0
        assert to_levels(log_mel(waveform, CLIP), CLIP).max() == 255


def test_twice_the_amplitude_is_6_decibels_more_at_full_scale_and_nothing_relative_to_the_clip():
    waveform = noise(amplitude=0.05)
    quiet, loud = log_mel(waveform, SPEC), log_mel(2 * waveform, SPEC)
    assert quiet.min() > SPEC.db_min and loud.max() < SPEC.db_max
    assert loud - quiet == pytest.approx(np.full_like(quiet, 6.0206), abs=1e-3)
    assert log_mel(2 * waveform, CLIP) == pytest.approx(log_mel(waveform, CLIP), abs=1e-3)


@both_references
def test_decibels_stay_within_the_range(spec):
    for waveform in (1e3 * noise(), 1e-6 * noise(), np.ones(RATE // 2, dtype=np.float32)):
        for image in (log_mel(waveform, spec), on_device(waveform, spec)):
            assert spec.db_min <= image.min() <= image.max() <= spec.db_max


@both_references
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_around_it_changes_nothing(spec, dtype):
    """In float16 the powers of quiet samples vanish and those of loud ones overflow."""
    batch = torch.from_numpy(np.stack([noise(), np.sign(noise()), noise(amplitude=1e-4), 0 * noise()]))
    module = LogMel(spec)
    with torch.autocast("cpu", dtype=dtype):
        assert (batch @ batch.T).dtype == dtype
        image = module(batch)
        of_half = module(batch.to(dtype))
    assert image.dtype == of_half.dtype == torch.float32
    assert torch.equal(image, module(batch))
    assert torch.equal(of_half, module(batch.to(dtype).float()))
    assert image.isfinite().all() and of_half.isfinite().all()


def test_input_is_not_written_into():
    waveform = noise()
    tensor = torch.from_numpy(waveform.copy())[None]
    for spec in (SPEC, CLIP):
        log_mel(waveform, spec)
        LogMel(spec)(tensor)
    assert np.array_equal(waveform, noise())
    assert np.array_equal(tensor[0].numpy(), noise())


@pytest.mark.parametrize("spec", [SPEC, CLIP, replace(SPEC, db_min=-31.7, db_max=11.2)])
def test_levels_hold_decibels_to_half_a_level(spec):
    decibels = np.random.default_rng(0).uniform(spec.db_min, spec.db_max, (128, 200)).astype(np.float32)
    decibels.flat[:2] = spec.db_min, spec.db_max
    levels = to_levels(decibels, spec)
    assert levels.dtype == np.uint8
    assert levels.flat[0] == 0 and levels.flat[1] == 255
    assert np.abs(to_decibels(levels, spec) - decibels).max() <= (spec.db_max - spec.db_min) / 255 / 2 * 1.001
    assert np.array_equal(to_levels(to_decibels(levels, spec), spec), levels)
