"""The whole benchmark: every question of `benchmarks` on one data set, in one run."""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig
from tqdm import tqdm

from esc50.assembly.data import build_clips, build_recipe, build_rows
from esc50.assembly.task import build_task, build_watch
from esc50.assembly.trainer import build_batches, build_trainer
from esc50.benchmarks.augmentation import measure_augmentation
from esc50.benchmarks.example import measure_example
from esc50.benchmarks.frozen import measure_frozen_phase
from esc50.benchmarks.gpu import GpuTimes, measure_gpu
from esc50.benchmarks.growth import measure_growth
from esc50.benchmarks.inference import measure_inference
from esc50.benchmarks.precompute import measure_precompute
from esc50.benchmarks.profiler import TRAIN
from esc50.benchmarks.recompute import measure_recompute
from esc50.benchmarks.report import write_report
from esc50.benchmarks.startup import measure_startup
from esc50.benchmarks.step import EpochTimes, StepTimes, measure_step
from esc50.benchmarks.timing import Measurement
from esc50.benchmarks.watch import LoggingTimes, measure_watch
from esc50.data.clip import Clip, class_names
from esc50.data.folds import Split
from esc50.files import write_atomically
from esc50.runs.preparation import settle_precision
from esc50.training.memory import keep_freed_memory
from esc50.training.precision import resolve_precision
from esc50.training.quiet import quieten
from esc50.training.task import Classifier
from esc50.watch.events import TENSORBOARD, RunEvents

ROUNDS = {"quick": 3, "full": 9}
PRECOMPUTE_CLIPS = {"quick": 200, "full": 400}
BATCHES = {"resnet50": 16, "melcnn": 32, "audionet": 16}
STEPS = {"resnet50": 2, "melcnn": 4, "audionet": 3}
FROZEN_CLIPS = 64
WATCHED_CLIPS = 240, 80  # to train and to validate, as ESC-10 has them
# The book's spectrogram, for the rows that compare with its figures.
BOOK_FEATURES = (
    "features.n_fft=2048",
    "features.win_length=2048",
    "features.hop_length=512",
    "features.f_max=22050",
    "features.reference=clip",
    "features.db_min=-80",
    "features.db_max=0",
)
MakeCfg = Callable[[list[str]], DictConfig]


class Suite:
    """What all questions share: the clips, and configurations of single runs on them."""

    def __init__(self, cfg: DictConfig, make_cfg: MakeCfg, folder: Path, *, data: str):
        self.clips = build_clips(cfg)
        self.num_classes = len(class_names(self.clips))
        self.folder = folder
        self._make_cfg = make_cfg
        self.places = [
            f"data={data}",
            f"data.root={cfg.data.root}",
            f"paths.data={cfg.paths.data}",
            f"paths.store={cfg.paths.store}",
        ]

    def cfg(self, *overrides: str) -> DictConfig:
        """A run's configuration on these clips, without augmentation."""
        return self._make_cfg([*self.places, "split=all", "augment=none", *overrides])

    def model(self, name: str, *overrides: str) -> DictConfig:
        """The same for one of the three models, from scratch, at the batch size that it is measured with."""
        weights = ["model.weights=null"] if name == "resnet50" else []
        return self.cfg(f"model={name}", f"loader.batch_size={BATCHES[name]}", *weights, *overrides)

    def task(self, cfg: DictConfig) -> Classifier:
        return build_task(cfg, num_classes=self.num_classes)

    def fit(
        self,
        cfg: DictConfig,
        callbacks: list,
        *,
        clips: Sequence[Clip] | None = None,
        val: Sequence[Clip] = (),
        num_steps: int | None = None,
    ) -> None:
        """Train as train.py does, on `clips` (all by default), for so many steps an epoch, validating with `val`; nothing is
        tested."""
        train = tuple(clips or self.clips)
        split = Split(protocol="holdout", train=train, val=tuple(val))
        task = self.task(cfg)
        settle_precision(cfg, None)
        data = build_batches(cfg, train + split.val, split)
        task.front_end.fit(data.rows, data.datasets["train"].indices[:64])
        with tempfile.TemporaryDirectory(dir=self.folder) as temporary:
            logger = RunEvents(temporary, version=TENSORBOARD)
            trainer = build_trainer(cfg, Path(temporary), logger, [*callbacks, *build_watch(cfg)])
            if num_steps is not None:
                trainer.limit_train_batches = num_steps
            trainer.fit(task, datamodule=data)


def run(cfg: DictConfig, folder: Path, *, make_cfg: MakeCfg, data: str, command: str) -> str:
    """Answer every question on the data of the option `data` and write the report into `folder`; returns it as text."""
    quieten()
    keep_freed_memory()
    suite, rounds = Suite(cfg, make_cfg, folder, data=data), ROUNDS[cfg.suite]
    clips = suite.clips[: PRECOMPUTE_CLIPS[cfg.suite]]
    book, ours = build_recipe(suite.cfg(*BOOK_FEATURES)), build_recipe(suite.cfg())
    questions: dict[str, Callable[[], Measurement]] = {
        "precompute": lambda: measure_precompute(clips, book, rounds=rounds),
        "one example": lambda: measure_example(clips, ours, rounds=4 * rounds),
        "augmentation": lambda: measure_augmentation(rounds=4 * rounds),
        **{f"step of {name}": partial(_step, suite, name, rounds) for name in BATCHES},
        **{f"recomputation of {name}": partial(_recompute, suite, name, rounds) for name in ("resnet50", "audionet")},
        "watching": lambda: _watch(suite),
        "frozen phase": lambda: _frozen(suite),
        "start-up": lambda: _startup(suite, rounds),
        "growth": lambda: measure_growth(suite.clips, ours, epoch_seconds=lambda some: _epoch(suite, some)),
        "inference": lambda: measure_inference(
            {name: partial(_task, suite, name) for name in BATCHES}, suite.clips, rounds=max(1, rounds - 2)
        ),
    }
    if torch.cuda.is_available():
        questions["GPU"] = lambda: _gpu(suite)
    measurements = []
    bar = tqdm(questions.items(), desc="benchmark", unit="question")
    for name, question in bar:
        bar.set_postfix_str(name)
        measurements.append(question())
    text = write_report(measurements, folder, command=command)
    if cfg.report:
        with write_atomically(cfg.report) as temporary:
            temporary.write_text(f"# Performance\n\n{text}", encoding="utf-8")
    return text


def _task(suite: Suite, name: str) -> Classifier:
    return suite.task(suite.model(name))


def _batch(suite: Suite, name: str) -> dict[str, Any]:
    """A model's task, a stored batch of the size it is measured with, and the precision it trains in."""
    cfg = suite.model(name)
    rows = build_rows(cfg, suite.clips, build_recipe(cfg))
    indices = range(BATCHES[name])
    precision, _ = resolve_precision("auto", model=cfg.model.precision, accelerator=cfg.trainer.accelerator)
    return {
        "make_task": lambda: suite.task(cfg),
        "stored": torch.from_numpy(rows.take(indices)),
        "precision": precision,
        "target": torch.tensor([suite.clips[i].target for i in indices]),
    }


def _step(suite: Suite, name: str, rounds: int) -> Measurement:
    def real_steps(watch: str, steps: int) -> list[float]:
        times = StepTimes()
        suite.fit(suite.model(name, f"watch={watch}", "trainer.max_epochs=1"), [times], num_steps=steps)
        return times.seconds

    batch = _batch(suite, name)
    return measure_step(
        name,
        **batch,
        real_steps=real_steps,
        rounds=rounds - 1,
        steps=STEPS[name],
        plain_goal=2.4 if name == "resnet50" and batch["precision"] == "bfloat16" else None,
    )


def _recompute(suite: Suite, name: str, rounds: int) -> Measurement:
    return measure_recompute(name, **_batch(suite, name), rounds=rounds)


def _gpu(suite: Suite) -> Measurement:
    def fit(name: str, times: GpuTimes) -> None:
        suite.fit(suite.model(name, "watch=none", "trainer.max_epochs=3", "trainer.accelerator=gpu"), [times])

    return measure_gpu({name: partial(fit, name) for name in BATCHES})


def _watch(suite: Suite) -> Measurement:
    train, val = suite.clips[: WATCHED_CLIPS[0]], suite.clips[WATCHED_CLIPS[0] : sum(WATCHED_CLIPS)]

    def fit(watch: str) -> tuple[list[float], list[float]]:
        times, logging = EpochTimes(), LoggingTimes()
        suite.fit(
            suite.model("melcnn", f"watch={watch}", "trainer.profile=parts", "trainer.max_epochs=8"),
            [times, logging],
            clips=train,
            val=val,
        )
        return times.seconds, logging.seconds

    return measure_watch(fit, what=f"melcnn, {len(train)} clips and {len(val)} to validate, as in ESC-10")


def _frozen(suite: Suite) -> Measurement:
    def epoch_seconds(cached: bool) -> list[float]:
        times = EpochTimes()
        cfg = suite.model(
            "resnet50",
            "watch=none",
            "trainer.max_epochs=3",
            "trainer.freeze_epochs=3",
            f"trainer.cache_frozen={str(cached).lower()}",
        )
        suite.fit(cfg, [times], clips=suite.clips[:FROZEN_CLIPS])
        return times.seconds

    return measure_frozen_phase(epoch_seconds, what=f"resnet50, {FROZEN_CLIPS} clips", rounds=1)


def _startup(suite: Suite, rounds: int) -> Measurement:
    cfg = suite.cfg()
    build_rows(cfg, suite.clips, build_recipe(cfg))
    settings = [*suite.places, "model=melcnn", "trainer.max_epochs=1", "watch=none"]
    return measure_startup(TRAIN, settings, rounds=rounds)


def _epoch(suite: Suite, clips: Sequence[Clip]) -> float:
    times = EpochTimes()
    with tempfile.TemporaryDirectory(dir=suite.folder) as store:
        suite.fit(suite.model("melcnn", "watch=none", "trainer.max_epochs=1", f"paths.store={store}"), [times], clips=clips)
    return times.seconds[0]
