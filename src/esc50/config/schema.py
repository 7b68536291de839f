"""The sections of a run's configuration: each key with its type, limits, unit and meaning.

Defaults stand in `conf/` alone. A field with `exclude=True` is a fact that an option states about its component and that the
component's constructor does not take. What a component takes besides is read from the constructor's signature.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from esc50.config.kinds import Count, Keys, NonNegative, Positive, PositiveInt, Stage, Switch, Wanted


class Section(BaseModel):
    """A part of the configuration: plain values, no key that is not named here, nothing converted."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())


class ComponentSection(Section):
    """A part that names what it configures; keys that are not named here are arguments of that."""

    target: str = Field(alias="_target_", description="what is called: the dotted name of a class or function")


class Data(ComponentSection):
    """Which clips there are: a function that returns a tuple of `esc50.data.clip.Clip`."""

    root: str = Field(description="folder of the data set; only read, unless `data.creates` is the same")
    balance: Literal["none", "oversample"] = Field(
        exclude=True, description="whether clips of small classes are repeated in training"
    )


class Split(Section):
    """Who trains, validates and tests."""

    protocol: Literal["holdout", "official", "all"] = Field(
        description="holdout: `fold` tests, the fold before it validates; official: `fold` tests, four train, the last epoch"
        " counts; all: every clip trains"
    )


class Waveform(Section):
    """Raw samples, kept as 16-bit integers."""

    kind: Literal["waveform", "mel_png", "logmel"] = Field(description="what is kept of a clip")
    stages: Annotated[list[Stage], Field(min_length=1)] = Field(
        description="what augmentation can work on; the last is what the model gets"
    )
    sample_rate: Annotated[int, Field(ge=1000)] = Field(description="rate that every clip is brought to, in Hz")
    seconds: Positive = Field(description="length that every clip is cut or padded to, in seconds")
    pad: Literal["zero", "repeat"] = Field(description="what a short clip is filled up with")
    normalize: Literal["imagenet", "train", "none"] = Field(
        description="statistics that inputs are standardised with: ImageNet's, those of the training clips, or none"
    )
    read: Literal["store", "compute", "lru"] = Field(
        description="from the store; from the audio at every access; or from the audio, remembering the last clips"
    )
    cache_size: PositiveInt = Field(description="clips that features.read=lru remembers")


class LogMel(Waveform):
    """Raw samples, and the log-mel spectrogram computed from them on the device."""

    n_fft: Annotated[int, Field(ge=16)] = Field(description="length of the Fourier transform, in samples")
    win_length: PositiveInt = Field(description="length of the Hann window, in samples, no longer than n_fft")
    hop_length: PositiveInt = Field(description="samples from one frame to the next")
    n_mels: PositiveInt = Field(description="mel bands")
    f_min: NonNegative = Field(description="lower edge of the lowest band, in Hz")
    f_max: Positive = Field(description="upper edge of the highest band, in Hz, at most half the sample rate")
    reference: Literal["full_scale", "clip"] = Field(
        description="what 0 dB is: the same for every clip, or the loudest point of each clip"
    )
    db_min: float = Field(description="level that is drawn black, in dB")
    db_max: float = Field(description="level that is drawn white, in dB")
    colormap: str | None = Field(description="matplotlib colour map of the PNGs; stored values stay the same")


class MelPng(LogMel):
    """One grey PNG of the log-mel spectrogram a clip, computed once."""


class Model(ComponentSection):
    """The network: a module that takes `num_classes` and `in_channels` besides its keys."""

    input: Stage = Field(exclude=True, description="what the network takes")
    normalize: Literal["imagenet", "train", "none"] = Field(
        exclude=True, description="what features.normalize follows unless it is set"
    )
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        exclude=True, description="what trainer.precision=auto follows where the hardware can do it"
    )
    gradient_checkpointing: Switch = Field(
        exclude=True, description="compute what blocks keep for the gradient twice: less memory, a third more time"
    )


class LrRatio(Section):
    """Each group's part of the rate; late and early are the halves of the body."""

    head: Positive = Field(description="part of optimizer.lr that the head learns at")
    late: NonNegative = Field(description="part of optimizer.lr that the later half of the body learns at")
    early: NonNegative = Field(description="part of optimizer.lr that the earlier half of the body learns at")


class Optimizer(ComponentSection):
    """What moves the weights: a class that takes parameter groups."""

    lr: Positive = Field(description="learning rate of the head")
    lr_ratio: LrRatio = Field(exclude=True, description="each parameter group's part of the rate")
    weight_decay: NonNegative = Field(description="weight decay")


class Schedule(ComponentSection):
    """The learning rate over the run: a function of progress from 0 to 1."""


class Trainer(Section):
    """How long, where and in what precision; `+trainer.` may add any other argument of Lightning's Trainer."""

    max_epochs: PositiveInt = Field(description="epochs")
    accelerator: Literal["auto", "cpu", "gpu", "cuda", "mps"] = Field(description="where to compute")
    devices: PositiveInt = Field(description="devices, or processes on a CPU")
    strategy: str = Field(description="how several devices share the work, a name of Lightning's")
    precision: Literal["auto", "float32", "bfloat16"] = Field(description="of training; evaluation is always float32")
    gradient_clip: Positive | None = Field(description="largest norm of the gradient")
    accumulate: PositiveInt = Field(description="batches to a step of the optimizer")
    freeze_epochs: Count = Field(description="first epochs in which only the head learns")
    cache_frozen: Switch = Field(
        description="compute a clip's features once while the body is frozen and nothing augments its input"
    )
    label_smoothing: Annotated[float, Field(ge=0, le=0.99)] = Field(description="share of the target spread over all classes")
    channels_last: Switch = Field(description="lay images out channels last, which is faster")
    compile: Switch = Field(description="torch.compile the model")
    detect_anomaly: Switch = Field(description="name the operation whose gradient is not a number; several times slower")
    check_data: Switch = Field(description="run the checklist before training and stop at clips that cannot be used")
    overfit_batches: PositiveInt | None = Field(description="train on so many batches of clips only")
    deterministic: Switch = Field(description="refuse operations that give different results from run to run")
    profile: Literal["parts", "trace"] | None = Field(
        description="parts: seconds of each part of training to parts.csv; trace: torch's trace of three steps, too"
    )


class Checkpoint(Section):
    """What is kept of a run's epochs."""

    monitor: Literal["val_accuracy", "val_loss", "val_top5", "val_macro_f1"] = Field(
        description="what chooses the tested checkpoint where there is validation"
    )
    save_top_k: PositiveInt = Field(description="best checkpoints that are kept")


class EarlyStopping(Section):
    """When to stop before the last epoch."""

    patience: PositiveInt | None = Field(
        description="epochs without a better checkpoint.monitor before training stops; null never stops early"
    )


class Loader(Section):
    """How stored clips become batches."""

    batch_size: PositiveInt = Field(description="clips in a batch, of one process")
    num_workers: Count = Field(description="processes that read; 0 reads in the training process")
    memory_limit_gb: NonNegative = Field(description="larger stores are read through a memory map, in GB")


class Paths(Section):
    """Where derived files lie, relative to where the command is started."""

    data: str = Field(description="downloads and generated data sets")
    store: str = Field(description="precomputed features")


class Run(Section):
    """The root: one option of each group, and the few values that belong to none."""

    data: Keys = Field(description="which clips there are")
    split: Keys = Field(description="who trains, validates and tests")
    features: Keys = Field(description="what becomes of a recording")
    augment: Keys = Field(description="what changes training clips")
    model: Keys = Field(description="the network")
    optimizer: Keys = Field(description="what moves the weights")
    schedule: Keys = Field(description="the learning rate over the run")
    trainer: Keys = Field(description="how long, where and in what precision")
    watch: Keys | None = Field(description="what TensorBoard shows beyond losses and scores")
    checkpoint: Keys = Field(description="what is kept of a run's epochs")
    early_stopping: Keys = Field(description="when to stop before the last epoch")
    loader: Keys = Field(description="how stored clips become batches")
    paths: Keys = Field(description="where derived files lie")
    fold: Annotated[int, Field(ge=1, le=5)] = Field(description="the fold that tests")
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(description="of weights, order and augmentation")
    resume: str | None = Field(description="a run folder or checkpoint to go on from")
    scored_by: str | None = Field(
        description="with split=all: folder of the sweep whose cross-validated score stands for this recipe"
    )
    report_optimistic: Switch = Field(
        description="note the best epoch on the test fold, too, as much of the literature reports it"
    )
    objective: Annotated[Literal["val_accuracy"], Wanted("val_accuracy")] | None = Field(
        description="what a search maximises; set by sweep=optuna"
    )


class Benchmark(Run):
    """The root of the benchmark."""

    suite: Literal["quick", "full"] = Field(description="quick: within ten minutes on two cores; full: more rounds")
    report: str | None = Field(description="where the table is written too, such as docs/performance.md")


FEATURES: dict[Any, type[Section]] = {"waveform": Waveform, "logmel": LogMel, "mel_png": MelPng}
PLAIN: dict[str, type[Section]] = {
    "split": Split,
    "trainer": Trainer,
    "checkpoint": Checkpoint,
    "early_stopping": EarlyStopping,
    "loader": Loader,
    "paths": Paths,
}
COMPONENTS: dict[str, type[ComponentSection]] = {"data": Data, "model": Model, "optimizer": Optimizer, "schedule": Schedule}
SLOTS = ("waveform", "spectrogram", "mix")  # of augment, each a mapping of names to components
# What the program gives to a constructor itself.
GIVEN = {"model": {"num_classes", "in_channels"}, "optimizer": {"params"}, "schedule": {"progress"}}
