"""What values of the configuration must be to each other."""

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

NUM_FOLDS = 5
SPLITS_WITHOUT_VALIDATION = ("official", "all")
ABSENT = object()


class Values:
    """A configuration by whole keys such as `features.n_mels`. `has` says whether they can be compared: there, and not
    found wrong by themselves already."""

    def __init__(self, values: dict, wrong: Collection[str] = ()):
        self._values, self._wrong = values, wrong

    def __getitem__(self, key: str) -> Any:
        found = self._values
        for part in key.split("."):
            found = found.get(part, ABSENT) if isinstance(found, dict) else ABSENT
        return found

    def has(self, *keys: str) -> bool:
        return all(self[key] is not ABSENT and not self._is_wrong(key) for key in keys)

    def _is_wrong(self, key: str) -> bool:
        """Found wrong itself, or below something that was, or as a list with an item that was."""
        above_or_item = (
            wrong
            for wrong in self._wrong
            if key.startswith(f"{wrong}.") or (wrong.startswith(f"{key}.") and wrong.rpartition(".")[2].isdigit())
        )
        return key in self._wrong or any(above_or_item)

    def parts(self, slot: str) -> dict[str, dict]:
        """The augmentations in a slot; one that is null is switched off."""
        found = self[f"augment.{slot}"] if self.has(f"augment.{slot}") else None
        return {name: part for name, part in (found or {}).items() if isinstance(part, dict)}


def nodes(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every key with its value, those that hold other keys too."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        child_key = f"{key}.{name}" if key else str(name)
        yield child_key, child
        yield from nodes(child, child_key)


def search(of: Values) -> Iterator[str]:
    """What is searched for can be measured."""
    if of.has("objective", "split.protocol") and of["objective"] and of["split.protocol"] in SPLITS_WITHOUT_VALIDATION:
        yield (
            f"split={of['split.protocol']} has no validation clips, whose accuracy a search maximises; choose split=holdout,"
            " or sweep=folds"
        )


def pair(of: Values) -> Iterator[str]:
    """Model and features."""
    stages, wanted = of["features.stages"], of["model.input"]
    if of.has("features.stages", "model.input") and stages[-1] != wanted:
        yield (
            f"the model takes a {wanted}, features={of['features.kind']} gives a {stages[-1]}; choose"
            f" features={'waveform' if wanted == 'waveform' else 'mel_png or logmel'}"
        )
    if of.has("features.normalize", "model.input") and (of["features.normalize"], wanted) == ("imagenet", "waveform"):
        yield "features.normalize=imagenet is for images; with a waveform choose train or none"


def spectrogram(of: Values) -> Iterator[str]:
    """What shapes a spectrogram."""
    for low, high in (("features.f_min", "features.f_max"), ("features.db_min", "features.db_max")):
        if of.has(low, high) and of[low] >= of[high]:
            yield f"{low}={of[low]}: wanted less than {high}={of[high]}"
    if of.has("features.f_max", "features.sample_rate") and of["features.f_max"] > of["features.sample_rate"] / 2:
        yield (f"features.f_max={of['features.f_max']}: above half the sample rate, {of['features.sample_rate'] / 2:g} Hz")
    if of.has("features.win_length", "features.n_fft") and of["features.win_length"] > of["features.n_fft"]:
        yield f"features.win_length={of['features.win_length']}: longer than features.n_fft={of['features.n_fft']}"


def length(of: Values) -> Iterator[str]:
    """A clip is long enough to hold something."""
    if of.has("features.seconds", "features.sample_rate"):
        samples = round(of["features.seconds"] * of["features.sample_rate"])
        wanted = of["features.hop_length"] if of.has("features.hop_length") else 1
        if samples < wanted:
            yield f"features.seconds={of['features.seconds']}: {samples} samples; wanted {wanted} or more"


def colours(of: Values) -> Iterator[str]:
    """Colour maps are for the PNGs of the store."""
    name = of["features.colormap"] if of.has("features.colormap") else None
    if name is None:
        return
    if of["features.kind"] != "mel_png" or of["features.read"] != "store":
        yield f"features.colormap={name}: only features=mel_png with features.read=store writes PNGs to colour"
        return
    import matplotlib  # slow, so only for those who ask

    if name not in matplotlib.colormaps:
        yield f"features.colormap={name}: matplotlib has no such colour map; viridis and magma are two it has"


def slots(of: Values) -> Iterator[str]:
    """Augmentations and what they work on."""
    for slot in ("waveform", "spectrogram"):
        if of.parts(slot) and of.has("features.stages") and slot not in of["features.stages"]:
            yield (
                f"augment.{slot} has {', '.join(of.parts(slot))}, but features={of['features.kind']} has no {slot} to"
                " work on; choose other features or another augment"
            )
    mixtures = of.parts("mix")
    if len(mixtures) > 1:
        yield f"augment.mix takes one way of mixing, not {len(mixtures)}: {', '.join(mixtures)}"


def masks(of: Values) -> Iterator[str]:
    """No mask is wider than the image of a clip of full length."""
    bands = of["features.n_mels"] if of.has("features.n_mels") else None
    frames = num_frames(of) if of.has("features.seconds", "features.sample_rate", "features.hop_length") else None
    limits = {
        "FrequencyMask": {"max_width": (bands, "mel bands")},
        "TimeMask": {"max_width": (frames, "frames")},
        "SpecAugment": {"F": (bands, "mel bands"), "T": (frames, "frames")},
    }
    for name, part in of.parts("spectrogram").items():
        for key, (size, unit) in limits.get(str(part.get("_target_")).rpartition(".")[2], {}).items():
            whole = f"augment.spectrogram.{name}.{key}"
            if size is not None and of.has(whole) and of[whole] > size:
                yield f"{whole}={of[whole]}: wider than the image, {size} {unit}"


def num_frames(of: Values) -> int:
    """Frames of a clip of full length."""
    return 1 + round(of["features.seconds"] * of["features.sample_rate"]) // of["features.hop_length"]


def ranges(of: Values) -> Iterator[str]:
    """An augmentation's least and most."""
    for slot in ("waveform", "spectrogram"):
        for name, part in of.parts(slot).items():
            for low in (key for key in part if key.startswith("min_")):
                high = low.replace("min_", "max_", 1)
                below, above = (f"augment.{slot}.{name}.{key}" for key in (low, high))
                if of.has(below, above) and of[below] > of[above]:
                    yield f"{below}={of[below]}: wanted no more than {high}={of[above]}"


def files(of: Values) -> Iterator[str]:
    """What must be there to be read."""
    creates = Path(of["data.creates"]).resolve() if of.has("data.creates") and of["data.creates"] else None
    if of.has("data.root") and not Path(of["data.root"]).is_dir() and Path(of["data.root"]).resolve() != creates:
        yield f"data.root={of['data.root']}: no such folder"
    if of.has("data.folds_csv") and of["data.folds_csv"] is not None and not Path(of["data.folds_csv"]).is_file():
        yield f"data.folds_csv={of['data.folds_csv']}: no such file"
    if of.has("resume") and of["resume"] is not None and not Path(of["resume"]).exists():
        yield f"resume={of['resume']}: no such run folder or checkpoint"


def scored(of: Values) -> Iterator[str]:
    """A score is quoted for what has none."""
    if of.has("scored_by") and of["scored_by"] is not None:
        if of.has("split.protocol") and of["split.protocol"] != "all":
            yield f"scored_by={of['scored_by']}: split={of['split.protocol']} has a score of its own; it is for split=all"
        if not Path(of["scored_by"]).is_dir():
            yield f"scored_by={of['scored_by']}: no such folder; give that of the sweep that measured this recipe"


def data(of: Values) -> Iterator[str]:
    """What a data set is made by."""
    if of.has("data.source_pattern"):
        try:
            re.compile(of["data.source_pattern"])
        except re.error as error:
            yield f"data.source_pattern={of['data.source_pattern']}: not a regular expression, {error}"
    if of.has("data.num_clips", "data.num_classes") and of["data.num_clips"] % (NUM_FOLDS * of["data.num_classes"]):
        yield (
            f"data.num_clips={of['data.num_clips']}: wanted a multiple of {NUM_FOLDS * of['data.num_classes']},"
            f" {NUM_FOLDS} folds of {of['data.num_classes']} classes"
        )


def training(of: Values) -> Iterator[str]:
    """What cannot go on or end as asked."""
    if (
        of.has("split.protocol", "early_stopping.patience")
        and of["early_stopping.patience"] is not None
        and of["split.protocol"] in SPLITS_WITHOUT_VALIDATION
    ):
        yield (
            f"early_stopping.patience={of['early_stopping.patience']}: split={of['split.protocol']} has no validation"
            " clips to stop on; use split=holdout or leave it null"
        )
    frozen, epochs = of["trainer.freeze_epochs"], of["trainer.max_epochs"]
    if of.has("trainer.freeze_epochs", "trainer.max_epochs") and 0 < frozen >= epochs:
        yield f"trainer.freeze_epochs={frozen}: the body would never be trained in trainer.max_epochs={epochs} epochs"


def outside(root: str, places: dict[str, str | Path]) -> list[str]:
    """Nothing derived lies inside the data: `places` by their key."""
    return [
        f"{key}={place}: lies inside data.root={root}, where nothing derived may be written; choose another {key}"
        for key, place in places.items()
        if Path(place).resolve().is_relative_to(Path(root).resolve())
    ]


RELATIONS = (pair, spectrogram, length, colours, slots, masks, ranges, files, scored, data, training)
