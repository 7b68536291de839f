"""The task: draws by key, loss by hand, evaluation without augmentation in float32, curves that survive a resume."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import lightning as L
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from lightning.pytorch.profilers import PassThroughProfiler
from torch import Tensor, nn

from esc50.augment.draws import Draws
from esc50.augment.mix import Mixup
from esc50.augment.spectrogram import FrequencyMask
from esc50.augment.waveform import Gain
from esc50.batches import ClipBatches
from esc50.data.clip import Clip
from esc50.data.folds import make_split
from esc50.errors import TrainingError
from esc50.features.front_end import FrontEnd
from esc50.features.logmel import LogMelSpec
from esc50.features.recipe import Recipe
from esc50.features.rows import PackedRows
from esc50.results.predictions import softmax
from esc50.training.checkpoints import AtomicCheckpointIO, BestAndLast, checkpoint_callback
from esc50.training.optimizers import parameter_groups
from esc50.training.schedules import constant, one_cycle
from esc50.training.task import Classifier

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{message}")
    for message in (
        ".*does not have many workers.*",
        ".*smaller than the logging interval.*",
        ".*litlogger.*",
        ".*`isinstance.treespec, LeafSpec.` is deprecated.*",
        ".*Checkpoint directory .* exists and is not empty.*",
        ".*Total length of `list` across ranks is zero.*",
    )
]

MEL = LogMelSpec(
    sample_rate=4000, n_fft=256, win_length=256, hop_length=100, n_mels=12, f_min=0.0, f_max=2000.0, db_min=-60.0, db_max=20.0
)
IMAGES = Recipe(kind="mel_png", sample_rate=4000, seconds=0.25, mel=MEL)
SAMPLES = Recipe(kind="waveform", sample_rate=4000, seconds=0.25)
SAMPLES_TO_IMAGES = Recipe(kind="logmel", sample_rate=4000, seconds=0.25, mel=MEL)
NUM_CLIPS, NUM_CLASSES, BATCH_SIZE = 30, 3, 6  # with fold 5: 18 clips train in 3 batches, 6 validate, 6 test
LR = 0.01


class Net(nn.Module):
    """Batch normalisation, dropout, a head, for inputs of any shape; `dtypes` are those it computed in."""

    def __init__(self, *, dropout: float = 0.3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(dropout))
        self.head = nn.Linear(8, NUM_CLASSES)
        self.dtypes: list[tuple[bool, torch.dtype]] = []

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = x.reshape(len(x), 12, -1)
        embedding = self.body(x.mean(dim=-1) + x.amax(dim=-1))
        logits = self.head(embedding)
        self.dtypes.append((self.training, logits.dtype))
        return {"logits": logits, "embedding": embedding}


class Recorder(nn.Module):
    """An augmentation that changes nothing and remembers what it was given to draw from."""

    def __init__(self):
        super().__init__()
        self.drawn: list[Tensor] = []

    def forward(self, x: Tensor, draws: Draws) -> Tensor:
        self.drawn.append(draws.uniform(4))
        return x


class Rates(L.Callback):
    """The learning rates that each step is made with, by the number of the step."""

    def __init__(self):
        self.of_step: dict[int, dict[str, float]] = {}

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        self.of_step[trainer.global_step] = {group["name"]: group["lr"] for group in optimizer.param_groups}


class KilledError(Exception):
    """As if somebody ended the process."""


class Kill(L.Callback):
    """Ends the run in the middle of an epoch."""

    def __init__(self, epoch: int):
        self.epoch = epoch

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if trainer.current_epoch == self.epoch and batch_idx == 1:
            raise KilledError


def task_of(*, recipe: Recipe = IMAGES, net: Callable[[], nn.Module] = Net, **how) -> Classifier:
    """A task with the same weights every time."""
    torch.manual_seed(0)
    ratio = how.pop("lr_ratio", dict.fromkeys(("head", "late", "early"), 1.0))
    return Classifier(
        net(),
        FrontEnd(recipe, normalization="none"),
        num_classes=NUM_CLASSES,
        seed=how.pop("seed", 5),
        optimizer=lambda model: torch.optim.AdamW(parameter_groups(model, lr=LR, lr_ratio=ratio)),
        schedule=how.pop("schedule", constant),
        **how,
    )


def stored_values(recipe: Recipe, num_clips: int = NUM_CLIPS) -> np.ndarray:
    info = np.iinfo(recipe.stored_dtype)
    return np.random.default_rng(0).integers(info.min, info.max, (num_clips, *recipe.stored_shape), recipe.stored_dtype)


def data_of(recipe: Recipe = IMAGES, *, seed: int = 5) -> ClipBatches:
    clips = tuple(
        Clip(
            filename=str(number),
            path=Path(str(number)),
            target=number % NUM_CLASSES,
            fold=number % 5 + 1,
            category=str(number % NUM_CLASSES),
            source=str(number),
        )
        for number in range(NUM_CLIPS)
    )
    rows = PackedRows(stored_values(recipe), np.arange(NUM_CLIPS), memory_limit=1e9)
    return ClipBatches(clips, rows, make_split(clips, protocol="holdout", fold=5), batch_size=BATCH_SIZE, seed=seed)


def batch_of(recipe: Recipe = IMAGES) -> dict[str, Tensor]:
    return {
        "input": torch.from_numpy(stored_values(recipe, 8)),
        "target": torch.arange(8) % NUM_CLASSES,
        "index": torch.arange(100, 108),
    }


def trainer_of(*callbacks: L.Callback, max_epochs: int = 2, **how) -> L.Trainer:
    keeps = any(isinstance(callback, BestAndLast) for callback in callbacks)
    return L.Trainer(
        max_epochs=max_epochs,
        accelerator="cpu",
        logger=False,
        callbacks=list(callbacks),
        enable_checkpointing=keeps,
        plugins=[AtomicCheckpointIO()],
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        **how,
    )


def step(task: Classifier, *, epoch: int = 0, batch_idx: int = 0, global_step: int = 0, recipe: Recipe = IMAGES) -> Tensor:
    """The loss of one training step as Lightning would ask for it."""
    trainer = SimpleNamespace(
        global_rank=0,
        world_size=1,
        current_epoch=epoch,
        global_step=global_step,
        profiler=PassThroughProfiler(),
        datamodule=SimpleNamespace(clips=[SimpleNamespace(filename=f"clip{i}.wav") for i in range(108)]),
    )
    task.trainer = trainer
    task.log = lambda *args, **kwargs: None
    return task.train().training_step(batch_of(recipe), batch_idx)


def test_every_draw_is_a_function_of_seed_epoch_and_batch():
    recorder = Recorder()
    task = task_of(augment={"spectrogram": {"recorder": recorder}}, seed=7)
    trainer_of(max_epochs=2).fit(task, datamodule=data_of())
    expected = [Draws(seed=7, epoch=epoch, batch=batch).uniform(4) for epoch in range(2) for batch in range(3)]
    assert len(recorder.drawn) == 6  # training alone: validation draws nothing
    assert torch.equal(torch.stack(recorder.drawn), torch.stack(expected))
    assert len({tuple(drawn.tolist()) for drawn in recorder.drawn}) == 6


def test_dropout_is_a_function_of_seed_epoch_and_batch():
    losses = []
    for state in (1, 2):
        task = task_of(net=partial(Net, dropout=0.5))
        torch.manual_seed(state)
        losses.append([step(task, epoch=epoch, batch_idx=batch).item() for epoch in (0, 3) for batch in (0, 1)])
    assert losses[0] == losses[1]
    assert len(set(losses[0])) == 4
    assert step(task_of(net=partial(Net, dropout=0.5), seed=6)).item() != losses[0][0]


def test_augmentations_are_applied_in_their_slots():
    """Waveform before the log-mel, spectrogram behind it, mixing last."""
    shapes = {}

    class Slot(nn.Module):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def forward(self, x, *more, num_classes=None):
            shapes[self.name] = tuple(x.shape)
            return x if num_classes is None else (x, F.one_hot(more[0], num_classes).float())

    augment = {slot: {"it": Slot(slot)} for slot in ("mix", "spectrogram", "waveform")}
    step(task_of(recipe=SAMPLES_TO_IMAGES, augment=augment), recipe=SAMPLES_TO_IMAGES)
    assert list(shapes.items()) == [("waveform", (8, 1000)), ("spectrogram", (8, 1, 12, 11)), ("mix", (8, 1, 12, 11))]


@pytest.mark.parametrize("stage", ["validate", "test"])
def test_nothing_is_augmented_in_evaluation(stage):
    recorder = Recorder()
    task = task_of(
        recipe=SAMPLES_TO_IMAGES,
        augment={
            "waveform": {"gain": Gain(min_db=20, max_db=30), "recorder": recorder},
            "spectrogram": {"mask": FrequencyMask(max_width=12, num_masks=3), "recorder": recorder},
            "mix": {"mixup": Mixup(alpha=1.0)},
        },
    )
    data = data_of(SAMPLES_TO_IMAGES)
    getattr(trainer_of(), stage)(task, datamodule=data, verbose=False)
    index, targets, probs = task.evaluated()
    role = data.split.val if stage == "validate" else data.split.test
    assert [str(number) for number in index] == [clip.filename for clip in role]
    assert targets.tolist() == [clip.target for clip in role]
    with torch.no_grad():
        plain = task.model.eval()(task.front_end(torch.from_numpy(stored_values(SAMPLES_TO_IMAGES)[index])))["logits"]
    np.testing.assert_allclose(probs, softmax(plain.numpy()), rtol=1e-5)
    assert recorder.drawn == []


def test_evaluation_is_in_float32_under_a_trainer_in_bfloat16():
    task, data = task_of(), data_of()
    trainer = trainer_of(max_epochs=1, precision="bf16-mixed")
    trainer.fit(task, datamodule=data)
    assert {dtype for training, dtype in task.model.dtypes if training} == {torch.bfloat16}
    assert {dtype for training, dtype in task.model.dtypes if not training} == {torch.float32}
    index, _, probs = task.evaluated()
    with torch.no_grad():
        plain = task.eval()(torch.from_numpy(stored_values(IMAGES)[index]))["logits"]
    assert np.array_equal(probs, softmax(plain.numpy()))


def test_the_loss_is_in_float32_in_bfloat16():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert step(task_of()).dtype == torch.float32


def test_validation_scores_are_those_of_all_clips():
    task = task_of()
    trainer = trainer_of()
    trainer.validate(task, datamodule=data_of(), verbose=False)
    _, targets, probs = task.evaluated()
    metrics = {name: value.item() for name, value in trainer.callback_metrics.items()}
    assert metrics["val_accuracy"] == pytest.approx((probs.argmax(axis=1) == targets).mean())
    assert metrics["val_loss"] == pytest.approx(-np.log(probs[np.arange(6), targets]).mean())
    assert {"val_top5", "val_macro_f1"} < set(metrics)


def test_the_loss_with_mixup_is_the_cross_entropy_with_both_labels():
    task, batch = task_of(net=partial(Net, dropout=0.0), augment={"mix": {"mixup": Mixup(alpha=0.4)}}), batch_of()
    found = step(task, epoch=2, batch_idx=1)
    draws = Draws(seed=5, epoch=2, batch=1)
    partner, share = draws.permutation(8), draws.beta(0.4, 8)
    x = task.front_end(batch["input"])
    logits = task.model(share.reshape(-1, 1, 1, 1) * x + (1 - share.reshape(-1, 1, 1, 1)) * x[partner])["logits"]
    log_probs = logits.log_softmax(dim=1)
    of_first = log_probs[torch.arange(8), batch["target"]]
    of_second = log_probs[torch.arange(8), batch["target"][partner]]
    assert ((share > 0.05) & (share < 0.95) & (partner != torch.arange(8))).any()
    torch.testing.assert_close(found, -(share * of_first + (1 - share) * of_second).mean(), rtol=1e-5, atol=1e-6)


def test_label_smoothing_gives_a_share_to_every_class():
    task, batch = task_of(net=partial(Net, dropout=0.0), label_smoothing=0.3), batch_of()
    found = step(task)
    log_probs = task.model(task.front_end(batch["input"]))["logits"].log_softmax(dim=1)
    wanted = 0.7 * F.one_hot(batch["target"], NUM_CLASSES) + 0.3 / NUM_CLASSES
    torch.testing.assert_close(found, -(wanted * log_probs).sum(dim=1).mean(), rtol=1e-5, atol=1e-6)


def test_a_loss_that_is_not_finite_names_step_and_clips():
    task = task_of()
    with torch.no_grad():
        task.model.head.bias.fill_(torch.nan)
    with pytest.raises(
        TrainingError,
        match=r"epoch 3: the loss is nan at step 41: the weights head\.bias are not finite .*;"
        r" the clips are clip100\.wav, .*clip107\.wav\. "
        r".*optimizer\.lr.*trainer\.gradient_clip",
    ) as refusal:
        step(task, epoch=2, global_step=41)
    assert "\n" not in str(refusal.value)


def test_a_loss_that_is_not_finite_ends_training_and_leaves_the_checkpoint_before(tmp_path):
    class Poison(L.Callback):
        def on_train_epoch_start(self, trainer, pl_module):
            if trainer.current_epoch == 1:
                pl_module.model.head.bias.data.fill_(torch.inf)

    trainer = trainer_of(checkpoint_callback(tmp_path, monitor=None, save_top_k=1), Poison(), max_epochs=3)
    with pytest.raises(TrainingError, match="epoch 2: the loss is nan at step 3: the weights"):
        trainer.fit(task_of(), datamodule=data_of())
    stored = torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)
    assert stored["epoch"] == 0
    assert all(torch.isfinite(value).all() for value in stored["state_dict"].values())


class BodyWatch(L.Callback):
    """State of the body and of the head at the start and the end of each epoch, validation included."""

    def __init__(self):
        self.moved: list[tuple[set[str], set[str]]] = []

    def on_train_epoch_start(self, trainer, pl_module):
        self._before = {name: value.clone() for name, value in pl_module.model.state_dict().items()}

    def on_train_epoch_end(self, trainer, pl_module):
        now = pl_module.model.state_dict()
        changed = {name for name, value in now.items() if not torch.equal(value, self._before[name])}
        head = {name for name in changed if name.startswith("head.")}
        self.moved.append((changed - head, head))


def test_the_body_is_frozen_for_the_first_epochs_then_everything_learns():
    watch, task = BodyWatch(), task_of(freeze_epochs=2)
    trainer_of(watch, max_epochs=4).fit(task, datamodule=data_of())
    head, everything = {"head.weight", "head.bias"}, {name for name in task.model.state_dict() if name.startswith("body.")}
    assert watch.moved == [(set(), head), (set(), head), (everything, head), (everything, head)]


def run(
    folder: Path, *callbacks: L.Callback, max_epochs: int, resume: bool = False, precision: str = "32-true", **how
) -> Classifier:
    """Train with everything that has a state: masks, mixing, dropout, AdamW, a schedule."""
    task = task_of(augment={"spectrogram": {"mask": FrequencyMask(max_width=4)}, "mix": {"mixup": Mixup(alpha=0.3)}}, **how)
    torch.manual_seed(len(callbacks) + resume)  # the global state may be any
    trainer_of(
        checkpoint_callback(folder, monitor="val_loss", save_top_k=1), *callbacks, max_epochs=max_epochs, precision=precision
    ).fit(task, datamodule=data_of(), weights_only=True, ckpt_path=folder / "checkpoints" / "last.ckpt" if resume else None)
    return task


@pytest.mark.parametrize(("killed_in", "freeze_epochs"), [(1, 0), (3, 0), (1, 2), (2, 2)])
def test_a_killed_run_that_goes_on_equals_one_that_was_never_killed(tmp_path, killed_in, freeze_epochs):
    how = {
        "max_epochs": 4,
        "schedule": one_cycle,
        "freeze_epochs": freeze_epochs,
        "lr_ratio": {"head": 1, "late": 0.5, "early": 0.1},
    }
    rates, first, second = Rates(), Rates(), Rates()
    whole = run(tmp_path / "whole", rates, **how)
    with pytest.raises(KilledError):
        run(tmp_path / "killed", first, Kill(killed_in), **how)
    resumed = run(tmp_path / "killed", second, resume=True, **how)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
    assert min(second.of_step) == 3 * killed_in
    assert {step: first.of_step[step] for step in range(3 * killed_in)} | second.of_step == rates.of_step
    best = [next((tmp_path / folder / "checkpoints").glob("epoch*")).name for folder in ("whole", "killed")]
    assert best[0] == best[1]


def test_the_rate_of_every_step_is_the_schedule_s_at_its_progress(tmp_path):
    rates = Rates()
    run(tmp_path, rates, max_epochs=3, schedule=one_cycle, lr_ratio={"head": 1, "late": 0.1, "early": 0.01})
    assert list(rates.of_step) == list(range(9))
    for number, found in rates.of_step.items():
        factor = LR * one_cycle(number / 9)
        assert found == pytest.approx({"head": factor, "late": 0.1 * factor, "early": 0.01 * factor})


def test_accumulated_batches_count_as_one_step():
    rates, task = Rates(), task_of(schedule=one_cycle)
    trainer_of(rates, max_epochs=2, accumulate_grad_batches=3).fit(task, datamodule=data_of())
    assert [found["head"] for found in rates.of_step.values()] == pytest.approx([LR * one_cycle(0.0), LR * one_cycle(0.5)])


@pytest.mark.parametrize("finished", [True, False])
def test_a_run_that_is_given_more_epochs_follows_the_longer_curve_from_where_it_stands(tmp_path, finished):
    longer, rates = Rates(), Rates()
    run(tmp_path / "longer", longer, max_epochs=5, schedule=one_cycle)
    if finished:
        run(tmp_path / "raised", max_epochs=2, schedule=one_cycle)
    else:
        with pytest.raises(KilledError):
            run(tmp_path / "raised", Kill(2), max_epochs=3, schedule=one_cycle)
    run(tmp_path / "raised", rates, max_epochs=5, schedule=one_cycle, resume=True)
    assert list(rates.of_step) == list(range(6, 15))
    for number, found in rates.of_step.items():
        assert found == pytest.approx(longer.of_step[number]), number


@pytest.mark.parametrize(
    ("recipe", "shape"), [(IMAGES, (2, 1, 12, 11)), (SAMPLES, (2, 1000)), (SAMPLES_TO_IMAGES, (2, 1, 12, 11))]
)
def test_the_model_gets_what_its_features_promise(recipe, shape):
    seen = []

    class Shape(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(1, NUM_CLASSES)

        def forward(self, x):
            seen.append((tuple(x.shape), x.dtype))
            return {"logits": self.head(x.flatten(1)[:, :1])}

    out = task_of(recipe=recipe, net=Shape)(torch.from_numpy(stored_values(recipe, 2)))
    assert out["logits"].shape == (2, NUM_CLASSES)
    assert seen == [(shape, torch.float32)]
