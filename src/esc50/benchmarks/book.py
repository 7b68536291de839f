"""The book's ways ("Programming PyTorch for Deep Learning", chapters 6 and 7), written as printed where they work, to be
measured against. Nothing else uses them."""

from pathlib import Path

import numpy as np
import soundfile
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor
from torchvision import transforms

SAMPLE_RATE, N_FFT, HOP_LENGTH, N_MELS = 44100, 2048, 512, 128
FIGURE_INCHES = (6.4, 4.8)  # matplotlib's default: 320 x 240 pixels at the book's 50 dots an inch
DOTS_PER_INCH = 50
IMAGENET = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def mel_decibels(path: Path) -> np.ndarray:
    """librosa's load, melspectrogram and power_to_db with the book's parameters."""
    import librosa  # which the project does without

    waveform, _ = librosa.load(path, sr=SAMPLE_RATE)
    mel = librosa.feature.melspectrogram(y=waveform, sr=SAMPLE_RATE, n_fft=N_FFT, hop_length=HOP_LENGTH, n_mels=N_MELS)
    return librosa.power_to_db(mel, ref=np.max)


class FigureWriter:
    """precompute_spectrograms: a matplotlib figure of each clip, saved with its axes. The figure is cleared for each clip,
    which the book forgets; with its listing every clip takes longer than the one before."""

    def __init__(self) -> None:
        self._figure = Figure(figsize=FIGURE_INCHES)
        FigureCanvasAgg(self._figure)

    def __call__(self, path: Path, target: Path) -> None:
        import librosa.display

        self._figure.clear()
        axes = self._figure.add_subplot()
        librosa.display.specshow(mel_decibels(path), sr=SAMPLE_RATE, hop_length=HOP_LENGTH, x_axis="time", y_axis="mel", ax=axes)
        self._figure.savefig(target, dpi=DOTS_PER_INCH)


def raw_audio(path: Path) -> Tensor:
    """The raw waveform as a tensor (the book's torchaudio.load)."""
    waveform, _ = soundfile.read(path, dtype="float32")
    return torch.from_numpy(waveform)


_to_normalised = transforms.Compose([transforms.ToTensor(), IMAGENET])


def on_the_fly(path: Path) -> Tensor:
    """Spectrogram computed in `__getitem__`, as an image of three channels, normalised."""
    decibels = mel_decibels(path)
    grey = ((decibels + 80) * (255 / 80)).clip(0, 255).astype(np.uint8)
    return _to_normalised(Image.fromarray(grey).convert("RGB"))


def from_png(path: Path) -> Tensor:
    """The saved figure through PIL, ToTensor and Normalize."""
    with Image.open(path) as image:
        return _to_normalised(image.convert("RGB"))


class BadRandom:
    """Noise on a PIL image by way of numpy, one image at a time (chapter 7's example for the flame graph)."""

    def __call__(self, image: Image.Image) -> Image.Image:
        pixels = np.array(image)
        noisy = pixels + np.random.random_sample(pixels.shape)
        return Image.fromarray(noisy.astype("uint8"), "RGB" if noisy.ndim == 3 else None)


def mask_frequency(image: Tensor, *, max_width: int) -> Tensor:
    """The book's FrequencyMask for one image `[channels, mel, frames]`, on the right axis."""
    start = np.random.randint(0, image.shape[-2] - max_width)
    width = np.random.randint(1, max_width + 1)
    image[..., start : start + width, :] = image.mean()
    return image


def mask_time(image: Tensor, *, max_width: int) -> Tensor:
    """The book's TimeMask for one image."""
    start = np.random.randint(0, image.shape[-1] - max_width)
    width = np.random.randint(1, max_width + 1)
    image[..., start : start + width] = image.mean()
    return image
