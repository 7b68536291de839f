"""The checklist of a data set, as file and pictures."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from esc50.data.checklist import Checklist
from esc50.data.clip import Clip
from esc50.features.picture import Picture
from esc50.files import write_atomically
from esc50.watch.data_page import draw_page, save_page, write_tensorboard


def write_checklist(
    checklist: Checklist, clips: Sequence[Clip], folder: Path, *, spectrogram: Callable[[Clip], Picture], sample_rate: int
) -> None:
    """Leave checklist.json, data_page.png and a TensorBoard page in `folder`; `sample_rate` in Hz, of what is heard."""
    with write_atomically(folder / "checklist.json") as temporary:
        temporary.write_text(json.dumps(checklist.to_dict(), indent=2) + "\n", encoding="utf-8")
    figures = draw_page(checklist, clips, spectrogram=spectrogram)
    save_page(figures, folder / "data_page.png")
    with SummaryWriter(folder / "tensorboard") as writer:
        write_tensorboard(writer, figures, checklist, clips, sample_rate=sample_rate)
