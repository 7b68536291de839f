"""Procedural sounds whose classes differ in how they move through time, hardly in their average spectrum."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.fft import irfft

# What a class is: from (generator, time stamps in seconds) to an envelope within 0..1 and a pitch curve in octaves.
Pattern = Callable[[Generator, np.ndarray], tuple[np.ndarray, np.ndarray | float]]

LOWEST_PITCH, HIGHEST_PITCH = 300.0, 1800.0  # Hz
LOWEST_SAMPLE_RATE = 8000  # Hz; below it the pitches above would lose most of their overtones
EDGE_SECONDS = 0.004  # the shortest attack, so that no envelope clicks by itself


@dataclass(frozen=True, kw_only=True)
class Voice:
    """What all takes of one source share, whatever its class: pitch, timbre, room. Colours are dB at frequencies."""

    pitch: float  # Hz
    overtones: tuple[tuple[float, float], ...]  # (frequency ratio, amplitude)
    noisiness: float  # 0..1, how far the carrier may be noise
    colour: tuple[np.ndarray, np.ndarray]  # (Hz, dB), of the sound
    background: tuple[np.ndarray, np.ndarray]  # (Hz, dB), of the noise behind it


def draw_voice(rng: Generator) -> Voice:
    """Draw a voice; the distribution is the same for all classes."""
    stretch = rng.choice([1.0, 1.0, rng.uniform(0.95, 1.15)])  # bells and bars are not harmonic
    num_overtones = rng.integers(1, 6)
    roll_off = rng.uniform(0.5, 1.5)
    return Voice(
        pitch=float(np.exp(rng.uniform(np.log(LOWEST_PITCH), np.log(HIGHEST_PITCH)))),
        overtones=tuple((k**stretch, rng.uniform(0.4, 1.0) / k**roll_off) for k in range(1, num_overtones + 1)),
        noisiness=rng.uniform(),
        colour=_draw_colour(rng, spread=8.0),
        background=_draw_colour(rng, spread=6.0),
    )


def _draw_colour(rng: Generator, *, spread: float) -> tuple[np.ndarray, np.ndarray]:
    frequencies = np.geomspace(50.0, 20000.0, 12)
    tilt = rng.uniform(-4.0, 0.0) * np.log2(frequencies / 1000.0)
    return frequencies, tilt + rng.normal(0.0, spread, len(frequencies))


def coloured_noise(rng: Generator, num_samples: int, *, sample_rate: int, colour: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Gaussian float32 noise `[time]` of root mean square 1, with the spectrum that `colour` (Hz, dB) draws."""
    frequencies = np.fft.rfftfreq(num_samples, 1 / sample_rate)
    # Single precision is half the work, and far finer than 16 bit.
    spectrum = rng.standard_normal(2 * len(frequencies), dtype=np.float32).view(np.complex64)
    spectrum *= np.interp(frequencies, colour[0], 10 ** (colour[1] / 20)).astype(np.float32)
    noise = irfft(spectrum, num_samples)
    return noise / np.sqrt(np.mean(noise**2))


def _tone(voice: Voice, octaves: np.ndarray | float, num_samples: int, *, sample_rate: int) -> np.ndarray:
    """Overtones that follow the pitch curve, each as loud as the voice's colour says; root mean square 1."""
    frequency = np.broadcast_to(voice.pitch * 2.0 ** np.asarray(octaves), num_samples)
    phase = np.cumsum(frequency) / sample_rate  # cycles
    log_frequencies, levels = np.log(voice.colour[0]), np.clip(voice.colour[1], -12.0, 12.0)
    tone, power = np.zeros(num_samples, np.float32), 0.0
    for ratio, amplitude in voice.overtones:
        if ratio * frequency.max() >= sample_rate / 2:
            continue
        level = np.interp(np.log(ratio * voice.pitch), log_frequencies, levels)  # dB
        amplitude = float(amplitude * 10 ** (level / 20))
        cycles = ratio * phase
        tone += amplitude * np.sin(2 * np.pi * (cycles - np.floor(cycles)).astype(np.float32))
        power += amplitude**2 / 2
    return tone / np.sqrt(power) if power else tone


def render(pattern: Pattern, voice: Voice, rng: Generator, *, num_samples: int, sample_rate: int) -> np.ndarray:
    """One take: float64 `[time]` within -1..1. Onset, end, level, noise and silence are drawn from `rng`."""
    time = np.arange(num_samples) / sample_rate
    seconds = num_samples / sample_rate
    begin, end = rng.uniform(0.0, 0.12) * seconds, rng.uniform(0.88, 1.0) * seconds
    envelope, octaves = pattern(rng, time)
    envelope = envelope * np.clip(np.minimum(time - begin, end - time) / 0.01, 0.0, 1.0)
    # Only a tone can show a movement of pitch, so those classes take noise as a seasoning.
    noisiness = voice.noisiness * (0.3 if isinstance(octaves, np.ndarray) else 1.0)
    octaves = octaves + rng.normal(0.0, 0.08)  # takes of one source differ a little in pitch
    carrier = np.sqrt(1 - noisiness) * _tone(voice, octaves, num_samples, sample_rate=sample_rate)
    carrier += np.sqrt(noisiness) * coloured_noise(rng, num_samples, sample_rate=sample_rate, colour=voice.colour)
    snr = rng.uniform(9.0, 27.0)  # dB, of the carrier at its loudest
    background = coloured_noise(rng, num_samples, sample_rate=sample_rate, colour=voice.background)
    mixture = carrier * envelope + 10 ** (-snr / 20) * background
    if rng.uniform() < 0.3:  # as where a short recording was filled up with digital silence
        mixture[time > end] = 0.0
    return mixture / np.abs(mixture).max() * 10 ** (rng.uniform(-20.0, -1.0) / 20)


def _events(rng: Generator, time: np.ndarray, onsets: np.ndarray, *, decay: np.ndarray, amplitudes: np.ndarray) -> np.ndarray:
    """Sharp attacks at `onsets` (seconds), each dying away with its `decay` (seconds to 1/e); the loudest counts."""
    envelope = np.zeros(len(time))
    sample_rate = 1 / (time[1] - time[0])
    for onset, tau, amplitude in zip(onsets, decay, amplitudes, strict=True):
        start = max(0, int(np.ceil(onset * sample_rate)))
        stop = min(len(time), int((onset + 7 * tau) * sample_rate))
        since = time[start:stop] - onset
        shape = amplitude * np.minimum(since / EDGE_SECONDS, 1.0) * np.exp(-since / tau)
        np.maximum(envelope[start:stop], shape, out=envelope[start:stop])
    return envelope


def _regular(rng: Generator, time: np.ndarray, period: float, *, jitter: float = 0.0) -> np.ndarray:
    """Onsets every `period` seconds from a random start, each moved by up to `jitter` periods."""
    onsets = np.arange(-rng.uniform(), time[-1] / period) * period
    return onsets + jitter * period * rng.uniform(-1.0, 1.0, len(onsets))


def siren(rng: Generator, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A steady sound whose pitch swings slowly up and down."""
    swing = np.sin(2 * np.pi * (rng.uniform(0.5, 1.3) * time + rng.uniform()))
    return np.ones(len(time)), rng.uniform(0.35, 0.8) * swing


def crackling_fire(rng: Generator, time: np.ndarray) -> tuple[np.ndarray, float]:
    """Clicks at random moments with random loudness."""
    num = rng.poisson(rng.uniform(8.0, 16.0) * time[-1]) + 3
    return _events(
        rng, time, rng.uniform(0.0, time[-1], num), decay=rng.uniform(0.008, 0.03, num), amplitudes=rng.uniform(0.2, 1.0, num)
    ), 0.0


def engine(rng: Generator, time: np.ndarray) -> tuple[np.ndarray, float]:
    """Fast regular throbbing."""
    throb = 0.5 + 0.5 * np.sin(2 * np.pi * (rng.uniform(8.0, 14.0) * time + rng.uniform()))
    return throb ** rng.uniform(1.0, 3.0), 0.0


def church_bells(rng: Generator, time: np.ndarray) -> tuple[np.ndarray, float]:
    """Strokes that ring for long."""
    onsets = _regular(rng, time, rng.uniform(0.7, 1.4), jitter=0.1)
    return _events(
        rng, time, onsets, decay=np.full(len(onsets), rng.uniform(0.2, 0.5)), amplitudes=rng.uniform(0.6, 1.0, len(onsets))
    ), 0.0


def sea_waves(rng: Generator, time: np.ndarray) -> tuple[np.ndarray, float]:
    """Swells that rise slowly and break off: strokes of a bell backwards."""
    return church_bells(rng, time)[0][::-1], 0.0


def clock_alarm(rng: Generator, time: np.ndarray) -> tuple[np.ndarray, float]:
    """Beeps of even loudness with pauses as long."""
    period, duty = rng.uniform(0.25, 0.5), rng.uniform(0.4, 0.6)
    position = (time / period + rng.uniform()) % 1.0 * period
    return np.clip(np.minimum(position, duty * period - position) / EDGE_SECONDS, 0.0, 1.0), 0.0


def door_knock(rng: Generator, time: np.ndarray) -> tuple[np.ndarray, float]:
    """Groups of a few quick dull blows."""
    spacing, groups = rng.uniform(0.1, 0.16), _regular(rng, time, rng.uniform(0.9, 1.4), jitter=0.1)
    onsets = np.concatenate([group + spacing * np.arange(rng.integers(3, 6)) for group in groups])
    return _events(
        rng, time, onsets, decay=np.full(len(onsets), rng.uniform(0.02, 0.04)), amplitudes=rng.uniform(0.6, 1.0, len(onsets))
    ), 0.0


def clock_tick(rng: Generator, time: np.ndarray) -> tuple[np.ndarray, float]:
    """Single ticks at a steady rate."""
    onsets = _regular(rng, time, rng.uniform(0.25, 0.45))
    return _events(
        rng,
        time,
        onsets,
        decay=np.full(len(onsets), rng.uniform(0.015, 0.035)),
        amplitudes=np.resize(rng.uniform(0.6, 1.0, 2), len(onsets)),
    ), 0.0


def _calls(rng: Generator, time: np.ndarray, *, direction: int) -> tuple[np.ndarray, np.ndarray]:
    """Short calls at uneven distances, each gliding up (`direction` 1) or down (-1)."""
    envelope, octaves = np.zeros(len(time)), np.zeros(len(time))
    onset = rng.uniform(0.0, 0.3)
    span, duration = rng.uniform(0.7, 1.4), rng.uniform(0.1, 0.2)
    while onset < time[-1]:
        length = duration * rng.uniform(0.8, 1.2)
        position = (time - onset) / length
        inside = (position >= 0) & (position < 1)
        envelope[inside] = np.sin(np.pi * position[inside]) ** 0.5 * rng.uniform(0.6, 1.0)
        octaves[inside] = direction * span * (position[inside] - 0.5)
        onset += length + rng.uniform(0.05, 0.5)
    return envelope, octaves


def chirping_birds(rng: Generator, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Short calls that glide upwards."""
    return _calls(rng, time, direction=1)


def dog(rng: Generator, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Short calls that fall."""
    return _calls(rng, time, direction=-1)


# In the order of their targets. A data set with few classes takes the first ones.
PATTERNS: dict[str, Pattern] = {
    pattern.__name__: pattern
    for pattern in (
        siren,
        crackling_fire,
        engine,
        church_bells,
        sea_waves,
        clock_alarm,
        door_knock,
        clock_tick,
        chirping_birds,
        dog,
    )
}
