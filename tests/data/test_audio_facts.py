"""What one file holds is measured alike however it is stored and read."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from esc50.data.audio_facts import BLOCK_SECONDS, CLIPPED_RUN, measure

RATE = 8000


def sound(seed: int, *, seconds: float = 1.0) -> np.ndarray:
    return 0.5 * np.random.default_rng(seed).uniform(-1, 1, round(seconds * RATE))


def int16(waveform: np.ndarray) -> np.ndarray:
    """Whole numbers are stored alike by every format; each rounds floats in its own way."""
    return np.round(32767 * waveform).astype(np.int16)


def test_runs_at_full_scale_are_counted_across_blocks(tmp_path):
    edge = BLOCK_SECONDS * RATE
    for length, is_clipped in ((CLIPPED_RUN, True), (CLIPPED_RUN - 1, False)):
        waveform = sound(1, seconds=BLOCK_SECONDS + 1)
        waveform[edge - 2 : edge - 2 + length] = -1.0
        soundfile.write(tmp_path / "a.wav", waveform, RATE)
        assert measure(tmp_path / "a.wav").is_clipped is is_clipped


def test_a_clean_tone_at_full_scale_is_not_clipped(tmp_path):
    time = np.arange(44100) / 44100
    soundfile.write(tmp_path / "a.wav", np.sin(2 * np.pi * 100 * time), 44100)
    assert not measure(tmp_path / "a.wav").is_clipped


def test_content_is_the_same_in_blocks_and_with_silence_inside(tmp_path):
    start, end = int16(sound(1, seconds=0.5)), int16(sound(2, seconds=0.5))
    gap = np.zeros(2 * BLOCK_SECONDS * RATE, dtype=np.int16)
    soundfile.write(tmp_path / "gap.wav", np.concatenate([start, gap, end]), RATE)
    soundfile.write(tmp_path / "gap.flac", np.concatenate([start, gap, end, gap]), RATE)
    soundfile.write(tmp_path / "shorter_gap.wav", np.concatenate([start, gap[1:], end]), RATE)
    gap_wav, gap_flac, shorter = (measure(tmp_path / name) for name in ("gap.wav", "gap.flac", "shorter_gap.wav"))
    assert gap_wav.content_hash == gap_flac.content_hash
    assert gap_wav.content_hash != shorter.content_hash


def test_peak_and_share_of_silence_are_those_of_the_samples(tmp_path):
    waveform = np.zeros(RATE)
    waveform[: RATE // 4] = 0.25
    soundfile.write(tmp_path / "a.wav", waveform, RATE)
    facts = measure(tmp_path / "a.wav")
    assert (facts.peak, facts.silent_share, facts.seconds) == (0.25, 0.75, 1.0)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "FLOAT"])
def test_clipping_is_found_at_every_depth(tmp_path, subtype):
    waveform = sound(1)
    waveform[50 : 50 + CLIPPED_RUN] = 1.0
    soundfile.write(tmp_path / "a.wav", waveform, RATE, subtype=subtype)
    assert measure(tmp_path / "a.wav").is_clipped


def test_broken_samples_are_counted_and_do_not_hide_the_peak(tmp_path):
    waveform = sound(1)
    waveform[[3, 4]] = np.nan, np.inf
    waveform[10] = 0.75
    soundfile.write(tmp_path / "a.wav", waveform, RATE, subtype="DOUBLE")
    facts = measure(tmp_path / "a.wav")
    assert (facts.num_non_finite, facts.peak) == (2, 0.75)


def test_a_folder_and_nothing_are_facts_too(tmp_path):
    assert measure(tmp_path).refusal == measure(Path(tmp_path / "gone.wav")).refusal == "no such file"


def test_a_file_that_breaks_off_behind_its_beginning_is_refused(tmp_path):
    soundfile.write(tmp_path / "a.flac", sound(1, seconds=5), RATE)
    whole = (tmp_path / "a.flac").read_bytes()
    (tmp_path / "a.flac").write_bytes(whole[: len(whole) * 3 // 4])
    assert measure(tmp_path / "a.flac").refusal == "not readable to its end (flac decoder lost sync)"


def test_a_header_that_hides_the_samples_is_told_from_an_empty_recording(tmp_path):
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), RATE)
    soundfile.write(tmp_path / "a.wav", sound(1), RATE)
    whole = bytearray((tmp_path / "a.wav").read_bytes())
    whole[40:44] = bytes(4)  # the length of the data chunk
    (tmp_path / "a.wav").write_bytes(whole)
    hidden, empty = measure(tmp_path / "a.wav"), measure(tmp_path / "empty.wav")
    assert hidden.num_samples == empty.num_samples == 0
    assert "header" in hidden.refusal and empty.refusal == "holds no samples"
