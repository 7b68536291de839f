"""The first thing a newcomer runs, whole, and how hard the sounds are that it trains on."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from esc50.data.folds import make_split
from esc50.data.tables import read_table
from esc50.features.logmel import LogMelSpec, mel_power

ROOT = Path(__file__).parents[2]
SPEC = LogMelSpec(
    sample_rate=44100, n_fft=4096, win_length=2205, hop_length=441, n_mels=128, f_min=0, f_max=15000, db_min=-70, db_max=40
)


def mean_spectra(clips) -> np.ndarray:
    """Mean log-mel spectrum of each clip, `[clips, mel]`: all that a model without a sense of time has."""
    from esc50.data.audio import read

    power = [mel_power(read(clip.path, sample_rate=44100, num_samples=220500), SPEC) for clip in clips]
    return np.stack([np.log10(np.maximum(one, 1e-10)).mean(axis=1) for one in power])


@pytest.mark.slow
def test_quickstart_reaches_its_score_which_a_mean_spectrum_cannot(tmp_path):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    done = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), "experiment=quickstart", "hydra.run.dir=run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    last = done.stdout.strip().splitlines()[-1]
    assert all(part in last for part in ("test accuracy", f"{metrics['test_accuracy']:.4f}", "80 clips", "fold 5", "run"))
    assert metrics["test_accuracy"] >= 0.8

    split = make_split(read_table(tmp_path / "data" / "synthetic"), protocol="holdout", fold=5)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    linear.fit(mean_spectra(split.train), [clip.target for clip in split.train])
    accuracy = linear.score(mean_spectra(split.test), [clip.target for clip in split.test])
    assert accuracy <= metrics["test_accuracy"] - 0.15
