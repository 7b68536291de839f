"""Waveform augmentations: what each does to tones, clicks, noise and silence."""

import math

import pytest
import torch

from esc50.augment import waveform
from esc50.augment.draws import Draws
from esc50.errors import ConfigError

RATE = 16_000  # Hz
N_FFT = 512
MODULES = {
    "gain": lambda **options: waveform.Gain(**options),
    "shift": lambda **options: waveform.Shift(**options),
    "noise": lambda **options: waveform.Noise(**options),
    "polarity": lambda **options: waveform.Polarity(**options),
    "echo": lambda **options: waveform.Echo(
        sample_rate=RATE, min_delay_seconds=1e-4, max_delay_seconds=0.01, num_repeats=2, **options
    ),
    "speed": lambda **options: waveform.Speed(**options),
    "pitch": lambda **options: waveform.PitchShift(sample_rate=RATE, **options),
}
NEUTRAL = {
    "gain": lambda: waveform.Gain(min_db=0, max_db=0),
    "shift": lambda: waveform.Shift(max_fraction=0),
    "echo": lambda: waveform.Echo(sample_rate=RATE, max_decay=0, probability=1),
    "speed": lambda: waveform.Speed(min_rate=1, max_rate=1),
    "pitch": lambda: waveform.PitchShift(sample_rate=RATE, max_semitones=0, probability=1),
}
every_module = pytest.mark.parametrize("name", MODULES)


def draws(batch: int = 0, **options) -> Draws:
    return Draws(seed=5, epoch=1, batch=batch, **options)


def sounds(*, batch: int = 6, time: int = 4000) -> torch.Tensor:
    return torch.randn(batch, time, generator=torch.Generator().manual_seed(0))


def tone(frequency: float, *, seconds: float = 1.0, batch: int = 1) -> torch.Tensor:
    return torch.sin(2 * torch.pi * frequency * torch.arange(int(seconds * RATE)) / RATE).repeat(batch, 1)


def peak(x: torch.Tensor) -> list[float]:
    """The strongest frequency of every example, Hz."""
    spectrum = torch.fft.rfft(x * torch.hann_window(x.shape[1])).abs()
    return (spectrum.argmax(dim=1) * RATE / x.shape[1]).tolist()


# What holds for all


@every_module
def test_evaluation_changes_nothing(name):
    x = sounds()
    assert torch.equal(MODULES[name](probability=1.0).eval()(x, draws()), x)


@every_module
def test_probability_zero_changes_nothing_yet_the_result_is_new(name):
    x = sounds()
    y = MODULES[name](probability=0.0)(x, draws())
    assert torch.equal(y, x)
    assert y.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("name", NEUTRAL)
def test_neutral_parameters_change_nothing(name):
    x = sounds()
    assert torch.equal(NEUTRAL[name]()(x, draws()), x)


@every_module
def test_probability_one_changes_every_example_and_not_the_input(name):
    x = sounds()
    before = x.clone()
    y = MODULES[name](probability=1.0)(x, draws())
    assert torch.equal(x, before)
    assert y.shape == x.shape
    assert y.dtype == x.dtype
    assert (y != x).any(dim=1).all()


@every_module
def test_probability_is_the_share_of_changed_examples(name):
    x = sounds(batch=400, time=300)
    changed = (MODULES[name](probability=0.3)(x, draws()) != x).any(dim=1)
    assert 0.2 < changed.float().mean() < 0.4


@every_module
def test_same_key_same_result_and_another_batch_another(name):
    x, module = sounds(batch=16, time=500), MODULES[name](probability=0.5)
    assert torch.equal(module(x, draws()), module(x, draws()))
    assert not torch.equal(module(x, draws()), module(x, draws(batch=1)))


@every_module
def test_examples_get_parameters_of_their_own(name):
    y = MODULES[name](probability=0.5 if name == "polarity" else 1.0)(sounds(batch=1).repeat(8, 1), draws())
    assert len(y.unique(dim=0)) == (2 if name == "polarity" else 8)


@pytest.mark.parametrize("name", sorted(set(MODULES) - {"noise"}))
def test_two_processes_change_their_examples_as_one_would(name):
    x, module = sounds(batch=8, time=1000), MODULES[name](probability=0.5)
    whole = module(x, draws())
    for rank in range(2):
        torch.testing.assert_close(module(x[rank::2], draws(rank=rank, world=2)), whole[rank::2], rtol=0, atol=1e-5)


@every_module
def test_as_many_numbers_are_drawn_whatever_the_coins_say(name):
    """Else one process would run ahead of another, and a change of probability would change all that follows."""
    after = []
    for probability in (0.0, 0.5, 1.0):
        source = draws()
        MODULES[name](probability=probability)(sounds(), source)
        after.append(source.uniform(3))
    assert torch.equal(after[0], after[1])
    assert torch.equal(after[0], after[2])


@every_module
@pytest.mark.parametrize("shape", [(1, 4000), (5, 10), (1, 10), (2, 1)])
def test_one_example_and_very_short_clips(name, shape):
    y = MODULES[name](probability=1.0)(sounds(batch=shape[0], time=shape[1]), draws())
    assert y.shape == shape
    assert y.isfinite().all()


@every_module
def test_silence_stays_silence(name):
    assert torch.equal(MODULES[name](probability=1.0)(torch.zeros(3, 3000), draws()).abs(), torch.zeros(3, 3000))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("gain", {"db": torch.tensor([-6.0, 0.0, 3.0])}),
        ("shift", {"samples": torch.tensor([-7, 0, 2000])}),
        ("polarity", {"flip": torch.tensor([True, False, True])}),
        ("echo", {"delay": torch.tensor([10, 700, 5000]), "decay": torch.tensor([0.5, 0.1, 0.9])}),
        ("speed", {"rate": torch.tensor([0.8, 1.0, 1.3]), "start": torch.tensor([100.0, 0.0, 0.0])}),
        ("pitch_shift", {"semitones": torch.tensor([-3.0, 0.0, 5.0])}),
    ],
)
def test_a_batch_is_its_examples_one_by_one(name, parameters):
    function = getattr(waveform, name)
    fixed = {"n_fft": N_FFT} if name == "pitch_shift" else {}
    x = sounds(batch=3, time=20_000)
    alone = [function(x[i : i + 1], **{key: value[i : i + 1] for key, value in parameters.items()}, **fixed) for i in range(3)]
    torch.testing.assert_close(function(x, **parameters, **fixed), torch.cat(alone), rtol=0, atol=1e-4)


# What holds for each


def test_gain_of_six_decibels_doubles():
    x = sounds(batch=2)
    y = waveform.gain(x, db=torch.tensor([20 * math.log10(2), -20 * math.log10(2)]))
    torch.testing.assert_close(y, torch.stack((2 * x[0], x[1] / 2)))


def test_gain_stays_within_its_range():
    decibels = 20 * waveform.Gain(min_db=-3, max_db=9)(torch.ones(2000, 1), draws()).log10()
    assert -3.001 < decibels.min() < -2.9
    assert 8.9 < decibels.max() < 9.001


def test_shift_is_a_roll_of_every_example():
    x, samples = sounds(batch=5, time=100), torch.tensor([0, 1, -1, 100, 42])
    expected = torch.stack([row.roll(int(n)) for row, n in zip(x, samples, strict=True)])
    assert torch.equal(waveform.shift(x, samples=samples), expected)


def test_shift_module_rolls_by_what_it_draws_and_no_further_than_told():
    x = torch.arange(1000.0).repeat(300, 1)
    by = waveform.Shift(max_fraction=0.2)(x, draws()).argmin(dim=1)  # where sample 0 went
    by = torch.where(by >= 500, by - 1000, by)
    assert -200 <= by.min() < -190
    assert 190 < by.max() <= 200
    source = draws()
    source.uniform(300)
    assert torch.equal(by, source.integers(300, low=-200, high=200))


@pytest.mark.parametrize("time", [10, 30_000])
@pytest.mark.parametrize("loudness", [1.0, 1e-4])
def test_noise_has_the_ratio_asked_for(time, loudness):
    x, snr_db = loudness * sounds(batch=4, time=time), torch.tensor([-5.0, 0.0, 20.0, 40.0])
    added = waveform.add_noise(x, 3 * sounds(batch=8, time=time)[4:], snr_db=snr_db) - x
    measured = 10 * (x.square().mean(dim=1) / added.square().mean(dim=1)).log10()
    torch.testing.assert_close(measured, snr_db, rtol=0, atol=0.2)


def test_noise_module_keeps_to_its_range_and_is_white():
    x = tone(440, batch=50)
    added = waveform.Noise(min_snr_db=5, max_snr_db=15, probability=1.0)(x, draws()) - x
    measured = 10 * (x.square().mean(dim=1) / added.square().mean(dim=1)).log10()
    assert 4.9 < measured.min() < 6
    assert 14 < measured.max() < 15.1
    bands = torch.fft.rfft(added).abs().square().mean(dim=0)[:8000].reshape(8, 1000).mean(dim=1)
    assert bands.max() < 1.1 * bands.min()


def test_polarity_turns_the_sign_of_some():
    x = sounds(batch=200, time=20)
    turned = (waveform.Polarity(probability=0.5)(x, draws()) == -x).all(dim=1)
    assert 60 < turned.sum() < 140
    assert torch.equal(waveform.polarity(x, flip=turned)[turned], -x[turned])
    assert torch.equal(waveform.polarity(x, flip=turned)[~turned], x[~turned])


def test_echo_of_a_click_is_at_the_delay():
    x = torch.zeros(2, 100)
    x[:, 10] = 1
    y = waveform.echo(x, delay=torch.tensor([30, 7]), decay=torch.tensor([0.5, 0.25]), num_repeats=2)
    expected = torch.zeros(2, 100)
    expected[:, 10] = 1
    expected[0, 40], expected[0, 70] = 0.5, 0.25
    expected[1, 17], expected[1, 24] = 0.25, 0.0625
    assert torch.equal(y, expected)


def test_echo_changes_nothing_before_the_delay_and_nothing_at_all_beyond_the_clip():
    x = sounds(batch=2, time=500)
    y = waveform.echo(x, delay=torch.tensor([200, 700]), decay=torch.tensor([0.5, 0.5]))
    assert torch.equal(y[0, :200], x[0, :200])
    assert (y[0, 200:] != x[0, 200:]).all()
    assert torch.equal(y[1], x[1])


def test_echo_module_keeps_to_its_delays_and_decay():
    x = torch.zeros(200, 4000)
    x[:, 0] = 1
    module = waveform.Echo(sample_rate=RATE, min_delay_seconds=0.05, max_delay_seconds=0.2, max_decay=0.4, probability=1)
    level, delay = module(x, draws())[:, 1:].max(dim=1)
    assert 800 <= delay.min() + 1 < 850
    assert 3150 < delay.max() + 1 <= 3200
    assert 0.35 < level.max() <= 0.4


def test_speed_two_turns_440_into_880_hertz_in_half_the_time():
    y = waveform.speed(tone(440), rate=torch.tensor([2.0]))
    assert peak(y[:, : RATE // 2]) == [880]
    assert y[:, : RATE // 2].abs().max() == pytest.approx(1, abs=0.01)
    assert y[:, RATE // 2 + 1 :].abs().max() == 0


def test_speed_reads_where_it_should():
    """Catmull-Rom is exact for a parabola; late samples would be wrong if positions were float32."""
    ramp = torch.linspace(-1, 1, 200_000)[None]
    y = waveform.speed(ramp, rate=torch.tensor([0.7]), start=torch.tensor([50_000.5]))
    expected = -1 + 2 * (50_000.5 + torch.tensor([0.7]).double() * torch.arange(200_000)) / 199_999
    torch.testing.assert_close(y[0].double(), expected, rtol=0, atol=3e-7)
    parabola = (torch.arange(20.0)[None] - 8) ** 2
    y = waveform.speed(parabola, rate=torch.tensor([0.25]), start=torch.tensor([2.0]), num_samples=40)
    torch.testing.assert_close(y[0], (2 + torch.arange(40) / 4 - 8) ** 2)


def test_speed_interpolates_tones_closely():
    rate = torch.tensor([0.8, 0.93, 1.07, 1.25])
    y = waveform.speed(tone(500, batch=4), rate=rate)[:, 2:12_000]
    expected = torch.sin(2 * torch.pi * 500 * rate[:, None].double() * torch.arange(2, 12_000) / RATE).float()
    assert (y - expected).abs().max() < 2e-3


def test_speed_before_the_clip_is_silence():
    y = waveform.speed(torch.ones(1, 100), rate=torch.tensor([1.0]), start=torch.tensor([-30.0]), num_samples=200)
    assert torch.equal(y[0], torch.cat((torch.zeros(30), torch.ones(100), torch.zeros(70))))


def test_speed_module_draws_rates_log_uniform_and_offsets_within_the_clip():
    ramp = torch.arange(1.0, 1001).repeat(2000, 1)
    y = waveform.Speed(min_rate=0.5, max_rate=2.0)(ramp, draws())
    rate = y[:, 11] - y[:, 10]
    assert 0.5 <= rate.min() < 0.51
    assert 1.98 < rate.max() <= 2.0
    assert (rate < 1).float().mean() == pytest.approx(0.5, abs=0.05)
    slower = rate < 0.99
    assert (y[slower].amin(dim=1) >= 1).all()  # no silence: all of a slower clip comes from within
    assert (y[slower, 0] - 1).max() > 400
    assert (y[rate > 1.01, 0] == 1).all()


@pytest.mark.parametrize("semitones", [12, 7, 2, 0.5, -2, -12])
def test_pitch_moves_a_tone_and_keeps_its_level(semitones):
    y = waveform.pitch_shift(tone(1000), semitones=torch.tensor([float(semitones)]), n_fft=N_FFT)
    assert y.shape == (1, RATE)
    assert peak(y)[0] == pytest.approx(1000 * 2 ** (semitones / 12), abs=1)  # one bin of one second
    inner = y[:, 2000:-2000]
    assert inner.square().mean().sqrt() == pytest.approx(math.sqrt(0.5), rel=0.02)


@pytest.mark.parametrize("semitones", [12.0, 2.0, -2.0, -12.0])
def test_pitch_leaves_events_where_they_were(semitones):
    x = torch.zeros(1, RATE)
    x[0, 6000:9000] = tone(800)[0, :3000]
    power = waveform.pitch_shift(x, semitones=torch.tensor([semitones]), n_fft=N_FFT)[0].square().cumsum(0)
    first, last = ((power > share * power[-1]).nonzero()[0].item() for share in (0.01, 0.99))
    assert first == pytest.approx(6000, abs=N_FFT // 2)
    assert last == pytest.approx(9000, abs=N_FFT)
    assert peak(waveform.pitch_shift(x, semitones=torch.tensor([semitones]), n_fft=N_FFT))[0] == pytest.approx(
        800 * 2 ** (semitones / 12), rel=0.02
    )


@pytest.mark.parametrize("semitones", [2.0, -2.0])
def test_pitch_keeps_a_click_a_click(semitones):
    x = 1e-3 * sounds(batch=1, time=RATE)
    x[0, 7000] = 1
    y = waveform.pitch_shift(x, semitones=torch.tensor([semitones]), n_fft=N_FFT)[0]
    at = y.abs().argmax().item()
    assert at == pytest.approx(7000, abs=N_FFT // 4)
    assert y[at - 5 : at + 6].square().sum() > 0.9 * y.square().sum()


def test_pitch_of_every_example_is_its_own():
    y = waveform.pitch_shift(tone(1000, batch=3), semitones=torch.tensor([-12.0, 0.0, 12.0]), n_fft=N_FFT)
    assert peak(y) == pytest.approx([500, 1000, 2000], abs=1)
    assert torch.equal(y[1:2], tone(1000))


def test_pitch_module_stays_within_its_semitones_both_ways():
    frequencies = torch.tensor(
        peak(waveform.PitchShift(sample_rate=RATE, max_semitones=3, probability=1)(tone(1000, batch=40, seconds=0.5), draws()))
    )
    semitones = 12 * (frequencies / 1000).log2()
    assert -3.05 < semitones.min() < -2
    assert 2 < semitones.max() < 3.05


def test_window_of_pitch_shift_lasts_about_40_milliseconds():
    for sample_rate in (8000, 16_000, 22_050, 44_100, 48_000):
        assert 0.028 < waveform.PitchShift(sample_rate=sample_rate).n_fft / sample_rate < 0.057


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: waveform.Gain(min_db=3, max_db=-3), "Gain wants min_db <= max_db, not 3 and -3"),
        (lambda: waveform.Gain(max_db=math.inf), "Gain wants min_db <= max_db"),
        (lambda: waveform.Shift(max_fraction=1.5), "Shift wants max_fraction within 0..1, not 1.5"),
        (lambda: waveform.Noise(min_snr_db=50), "Noise wants min_snr_db <= max_snr_db, not 50 and 40.0"),
        (lambda: waveform.Noise(min_snr_db=math.nan), "Noise wants min_snr_db <= max_snr_db"),
        (lambda: waveform.Polarity(probability=-0.1), "Polarity wants a probability within 0..1, not -0.1"),
        (lambda: waveform.Echo(sample_rate=0), "Echo wants a sample_rate above 0 Hz, not 0"),
        (lambda: waveform.Echo(sample_rate=RATE, min_delay_seconds=0), "Echo wants 0 < min_delay_seconds"),
        (lambda: waveform.Echo(sample_rate=RATE, min_delay_seconds=1), "not 1 and 0.3"),
        (lambda: waveform.Echo(sample_rate=RATE, max_decay=1.1), "Echo wants max_decay within 0..1"),
        (lambda: waveform.Echo(sample_rate=RATE, num_repeats=0), "num_repeats of 1 or more, not 0.5 and 0"),
        (lambda: waveform.Speed(min_rate=0), "Speed wants 0 < min_rate <= max_rate, not 0 and 1.25"),
        (lambda: waveform.Speed(min_rate=2), "Speed wants 0 < min_rate <= max_rate, not 2 and 1.25"),
        (lambda: waveform.PitchShift(sample_rate=RATE, max_semitones=-1), "max_semitones within 0..24"),
        (lambda: waveform.PitchShift(sample_rate=-1), "PitchShift wants a sample_rate above 0 Hz, not -1"),
        (lambda: waveform.Speed(probability=1.01), "Speed wants a probability within 0..1"),
    ],
)
def test_impossible_values_are_refused_in_one_line(build, words):
    with pytest.raises(ConfigError) as caught:
        build()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
