"""The configuration: every option composes and builds, every impossible value is named before anything heavy is imported."""

import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from esc50.config.door import check, check_command
from esc50.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
OPTIONS = {
    group.name: sorted(path.stem for path in group.glob("*.yaml"))
    for group in sorted(CONF.iterdir())
    if group.is_dir() and group.name != "hydra"
}
EVERY = [(group, option) for group, options in OPTIONS.items() for option in options]


def chosen(group: str, option: str, sounds: Path) -> list[str]:
    """The option, with what it needs beside it."""
    text = (CONF / group / f"{option}.yaml").read_text(encoding="utf-8")
    needs = {
        "data": [f"data.root={sounds}"] if option == "folder" else [],
        "features": ["model=audionet"] if option == "waveform" else [],
        "augment": ["features=logmel"] if "augment.waveform" in text else [],
    }
    return [*needs.get(group, []), f"{group}={option}"]


@pytest.fixture
def problem(compose, sounds):
    """The message of the refusal of a folder's configuration with these overrides."""

    def refused(*overrides: str) -> str:
        with pytest.raises(ConfigError) as caught:
            check(compose("data=folder", f"data.root={sounds}", *overrides))
        return str(caught.value)

    return refused


# ---------------------------------------------------------------------- composing


def test_the_options_are_found():
    assert OPTIONS.keys() >= {
        "data",
        "features",
        "split",
        "model",
        "augment",
        "optimizer",
        "schedule",
        "trainer",
        "watch",
        "experiment",
        "sweep",
    }
    assert {"audionet", "melcnn", "resnet50", "torchvision"} <= set(OPTIONS["model"])


def test_the_defaults_are_accepted(compose):
    cfg = compose()
    check(cfg)
    assert (cfg.fold, cfg.split.protocol, cfg.features.kind) == (5, "holdout", "mel_png")


@pytest.mark.parametrize(("group", "option"), EVERY)
def test_every_option_composes_and_is_accepted(group, option, compose, sounds):
    check(compose(*chosen(group, option, sounds)))


def test_audionet_selects_waveforms_by_itself_and_a_choice_on_the_command_line_wins(compose):
    assert compose("model=audionet").features.kind == "waveform"
    assert compose("model=audionet", "features=logmel").features.kind == "logmel"
    assert compose("features=logmel", "model=audionet").features.kind == "logmel"
    assert compose("model=melcnn").features.kind == "mel_png"


def test_pretrained_networks_select_their_optimiser_by_themselves_and_a_choice_on_the_command_line_wins(compose):
    rates = compose("model=resnet50").optimizer.lr_ratio
    assert rates.head > rates.late > rates.early
    assert compose("model=resnet50", "optimizer=adam").optimizer._target_ == "torch.optim.Adam"
    assert compose("model=resnet50").model.hidden == 500


def test_normalisation_follows_the_model_and_can_be_chosen(compose):
    assert compose("model=resnet50").features.normalize == "imagenet"
    assert compose("model=melcnn").features.normalize == "train"
    assert compose("model=melcnn", "features.normalize=none").features.normalize == "none"


def test_the_books_recipes_hold_what_the_book_says(compose):
    resnet, audionet = compose("experiment=book_resnet50"), compose("experiment=book_audionet")
    rates = [resnet.optimizer.lr * resnet.optimizer.lr_ratio[name] for name in ("head", "late", "early")]
    assert rates == pytest.approx([1e-2, 1e-4, 1e-8])
    assert (resnet.features.n_fft, resnet.features.hop_length, resnet.features.n_mels) == (2048, 512, 128)
    assert (resnet.features.reference, resnet.model.hidden) == ("clip", 500)
    assert (audionet.trainer.max_epochs, audionet.optimizer._target_) == (20, "torch.optim.Adam")
    assert {cfg.split.protocol for cfg in (resnet, audionet)} == {"holdout"}
    assert {cfg.fold for cfg in (resnet, audionet)} == {5}


# ---------------------------------------------------------------------- building


@pytest.mark.parametrize("option", OPTIONS["model"])
def test_every_model_builds_and_classifies_a_batch_of_its_features(option, compose):
    import torch

    from esc50.assembly.task import build_task

    cfg = compose(f"model={option}", "features.seconds=1")
    if "weights" in cfg.model:
        cfg.model.weights = None
    if "timm" in cfg.model._target_.lower():
        pytest.importorskip("timm")
    task = build_task(cfg, num_classes=3).eval()
    with torch.no_grad():
        logits = task(stored_batch(task, 2))["logits"]
    assert logits.shape == (2, 3)
    assert torch.isfinite(logits).all()
    assert sum(parameter.numel() for parameter in task.model.head.parameters()) > 0


def stored_batch(task, size):
    """What a store would give for `size` noisy clips."""
    import torch

    recipe = task.front_end.recipe
    high = 256 if recipe.keeps_images else 20000
    values = torch.randint(0, high, (size, *recipe.stored_shape), generator=torch.Generator().manual_seed(0))
    return values.to(torch.uint8 if recipe.keeps_images else torch.int16)


@pytest.mark.parametrize("option", OPTIONS["augment"])
def test_every_augmentation_builds_changes_training_batches_and_leaves_others_alone(option, compose, sounds):
    import torch

    from esc50.assembly.task import build_task
    from esc50.augment.draws import Draws

    cfg = compose(
        *chosen("augment", option, sounds), "features.sample_rate=16000", "features.f_max=8000", "model.channels=[4,8,8,8]"
    )
    check(cfg)
    task = build_task(cfg, num_classes=3)
    batch = {"input": stored_batch(task, 4), "target": torch.tensor([0, 1, 2, 1])}
    clean, truth = task.front_end(batch["input"]), torch.eye(3)[batch["target"]]
    augmented, probs = task.train().augmented(batch, Draws(seed=0, epoch=0, batch=0))
    assert augmented.shape == clean.shape
    assert torch.isfinite(augmented).all()
    assert torch.allclose(probs.sum(dim=1), torch.ones(4))
    assert torch.equal(augmented, clean) == (option == "none")
    assert torch.equal(probs, truth) == (not cfg.augment.mix)
    still, probs = task.eval().augmented(batch, Draws(seed=0, epoch=0, batch=0))
    assert torch.equal(still, clean)
    assert torch.equal(probs, truth)


def test_a_part_of_an_augmentation_that_is_null_is_switched_off(compose):
    from esc50.assembly.task import build_task

    cfg = compose("augment=strong", "augment.spectrogram.time_shift=null", "augment.mix=null")
    check(cfg)
    task = build_task(cfg, num_classes=3)
    assert list(task.augment["spectrogram"]) == ["frequency_mask", "time_mask"]
    assert len(task.augment["mix"]) == 0


@pytest.mark.parametrize("option", OPTIONS["optimizer"])
def test_every_optimiser_gives_each_group_its_part_of_the_rate(option, compose):
    from esc50.assembly.task import build_optimizer, build_task

    cfg = compose(f"optimizer={option}", "optimizer.lr=0.5")
    groups = build_optimizer(cfg)(build_task(cfg, num_classes=3).model).param_groups
    assert {group["name"]: group["lr"] for group in groups} == {
        name: pytest.approx(0.5 * ratio) for name, ratio in cfg.optimizer.lr_ratio.items()
    }


@pytest.mark.parametrize("option", OPTIONS["schedule"])
def test_every_schedule_stays_within_the_full_rate_and_reaches_it(option, compose):
    from esc50.assembly.data import component

    schedule = component(compose(f"schedule={option}"), "schedule", _partial_=True)
    factors = [schedule(step / 1000) for step in range(1001)]
    assert max(factors) == pytest.approx(1.0)
    assert min(factors) >= 0


@pytest.mark.parametrize("option", OPTIONS["features"])
def test_every_kind_of_features_builds_and_gives_what_its_stages_say(option, compose, sounds):
    from esc50.assembly.data import build_recipe
    from esc50.features.front_end import FrontEnd

    cfg = compose(*chosen("features", option, sounds), "features.seconds=1")
    recipe = build_recipe(cfg)
    assert recipe.num_samples == cfg.features.sample_rate
    x = FrontEnd(recipe, normalization="none")(stored_batch(FrontHolder(recipe), 2))
    assert x.dim() == (2 if cfg.features.stages[-1] == "waveform" else 4)
    assert recipe.keeps_images == (list(cfg.features.stages) == ["spectrogram"])


class FrontHolder:
    """As much of a task as `stored_batch` asks for."""

    def __init__(self, recipe):
        self.front_end = self
        self.recipe = recipe


@pytest.mark.parametrize("option", OPTIONS["data"])
def test_every_data_set_builds_and_every_split_divides_it(option, compose, sounds, tmp_path):
    from esc50.assembly.data import build_clips, build_split

    layout = compose(
        "data=synthetic",
        f"paths.data={tmp_path}",
        "data.num_classes=4",
        "data.num_clips=40",
        "data.seconds=0.25",
        "data.sample_rate=8000",
    )
    cfg = {
        "synthetic": layout,
        "folder": compose("data=folder", f"data.root={sounds}"),
    }.get(option)
    if cfg is None:  # the others are in ESC-50's layout, which the synthetic data set is written in, too
        build_clips(layout)
        cfg = compose(f"data={option}", f"data.root={layout.data.root}")
    check(cfg)
    clips = build_clips(cfg)
    assert len(clips) == {"folder": 30, "esc10": 20}.get(option, 40)
    for protocol, roles in (("holdout", 3), ("official", 2), ("all", 1)):
        cfg.split.protocol = protocol
        split = build_split(cfg, clips)
        assert sum(map(len, split.roles().values())) == len(clips)
        assert sum(bool(members) for members in split.roles().values()) == roles


@pytest.mark.parametrize("option", OPTIONS["watch"])
def test_every_watch_builds_one_callback_a_panel(option, compose):
    import lightning as L

    from esc50.assembly.task import build_watch

    cfg = compose(f"watch={option}")
    callbacks = build_watch(cfg)
    assert len(callbacks) == len(cfg.watch)
    assert all(isinstance(callback, L.Callback) for callback in callbacks)
    assert (callbacks == []) == (option == "none")


def test_every_panel_that_there_is_belongs_to_the_full_watch_and_can_be_taken_out(compose):
    from esc50.assembly.task import build_watch

    panels = {path.stem for path in (CONF / "watch" / "panels").glob("*.yaml")}
    assert set(compose("watch=full").watch) == panels
    assert len(build_watch(compose("watch=full", "watch.model_graph=null"))) == len(panels) - 1
    assert len(build_watch(compose("watch=full", "~watch.model_graph"))) == len(panels) - 1


# ---------------------------------------------------------------------- refusing

IMPOSSIBLE = {
    "fold 6": (["fold=6"], "fold=6: wanted a whole number from 1 to 5"),
    "fold 0": (["fold=0"], "fold=0: wanted a whole number from 1 to 5"),
    "fold as text": (["fold=abc"], "fold=abc: wanted a whole number"),
    "fold as a list": (["fold=[1,2]"], "fold=[1, 2]: wanted a whole number"),
    "fold as a boolean": (["fold=true"], "fold=True: wanted a whole number"),
    "fold null": (["fold=null"], "fold=null: wanted a whole number"),
    "seed with a fraction": (["seed=1.5"], "seed=1.5: wanted a whole number from 0 to 2147483647"),
    "seed below 0": (["seed=-1"], "seed=-1: wanted"),
    "rate of 0": (["optimizer.lr=0"], "optimizer.lr=0: wanted a number above 0"),
    "rate not finite": (["optimizer.lr=inf"], "optimizer.lr=inf: wanted a number above 0"),
    "rate not a number": (["optimizer.lr=nan"], "optimizer.lr=nan: wanted a number above 0"),
    "rate as a boolean": (["optimizer.lr=true"], "optimizer.lr=True: wanted a number above 0"),
    "yes or no as a number": (["trainer.compile=1"], "trainer.compile=1: wanted true or false"),
    "yes or no as a text": (["trainer.channels_last='yes'"], "trainer.channels_last=yes: wanted true or false"),
    "no epochs": (["trainer.max_epochs=0"], "trainer.max_epochs=0: wanted a whole number of 1 or more"),
    "no batch": (["loader.batch_size=0"], "loader.batch_size=0: wanted a whole number of 1 or more"),
    "typo in a choice": (["checkpoint.monitor=val_acuracy"], "did you mean val_accuracy?"),
    "typo in another choice": (["features.normalize=trian"], "did you mean train?"),
    "unknown precision": (["trainer.precision=float16"], "trainer.precision=float16: wanted one of auto, float32, bfloat16"),
    "unknown accelerator": (["trainer.accelerator=gpuu"], "did you mean gpu?"),
    "no mel bands": (["features.n_mels=0"], "features.n_mels=0: wanted a whole number of 1 or more"),
    "f_max above half the rate": (["features.f_max=30000"], "features.f_max=30000: above half the sample rate, 22050 Hz"),
    "f_min above f_max": (["features.f_min=16000"], "features.f_min=16000: wanted less than features.f_max=15000"),
    "window longer than the FFT": (["features.win_length=5000"], "features.win_length=5000: longer than features.n_fft=4096"),
    "empty range of decibels": (["features.db_min=50"], "features.db_min=50: wanted less than features.db_max=40"),
    "frequency mask too wide": (
        ["augment=strong", "augment.spectrogram.frequency_mask.max_width=129"],
        "augment.spectrogram.frequency_mask.max_width=129: wider than the image, 128 mel bands",
    ),
    "time mask too wide": (
        ["augment=strong", "augment.spectrogram.time_mask.max_width=502"],
        "augment.spectrogram.time_mask.max_width=502: wider than the image, 501 frames",
    ),
    "SpecAugment's F too wide": (
        ["augment=specaugment", "augment.spectrogram.specaugment.F=129"],
        "augment.spectrogram.specaugment.F=129: wider than the image, 128 mel bands",
    ),
    "SpecAugment's T too wide": (
        ["augment=specaugment", "augment.spectrogram.specaugment.T=502"],
        "augment.spectrogram.specaugment.T=502: wider than the image, 501 frames",
    ),
    "mixup below 0": (
        ["augment=mixup", "augment.mix.mixup.alpha=-1"],
        "augment.mix.mixup.alpha=-1: wanted a number of 0 or more",
    ),
    "probability above 1": (
        ["augment=strong", "augment.spectrogram.time_mask.probability=1.5"],
        "augment.spectrogram.time_mask.probability=1.5: wanted a number from 0 to 1",
    ),
    "least above most": (
        ["augment=waveform", "features=logmel", "augment.waveform.gain.min_db=7"],
        "augment.waveform.gain.min_db=7: wanted no more than max_db=6",
    ),
    "least rate above most": (
        ["augment=strong_waveform", "features=logmel", "augment.waveform.speed.min_rate=2"],
        "augment.waveform.speed.min_rate=2: wanted no more than max_rate=1.25",
    ),
    "two ways of mixing": (
        ["augment=mixup", "+augment.mix.other={_target_: esc50.augment.mix.Mixup, alpha: 1}"],
        "augment.mix takes one way of mixing, not 2",
    ),
    "missing folder": (["data.root=/no/such/folder"], "data.root=/no/such/folder: no such folder"),
    "missing csv": (["data.folds_csv=/no/folds.csv"], "data.folds_csv=/no/folds.csv: no such file"),
    "pattern that is none": (["data.source_pattern='('"], "data.source_pattern=(: not a regular expression"),
    "missing run to resume": (["resume=/no/such/run"], "resume=/no/such/run: no such run folder or checkpoint"),
    "waveforms for an image model": (["features=waveform"], "the model takes a spectrogram, features=waveform gives a waveform"),
    "images for a waveform model": (
        ["model=audionet", "features=mel_png"],
        "the model takes a waveform, features=mel_png gives a spectrogram",
    ),
    "ImageNet statistics for waveforms": (
        ["model=audionet", "features.normalize=imagenet"],
        "features.normalize=imagenet is for images",
    ),
    "waveform augmentation of images": (["augment=waveform"], "speed, noise, but features=mel_png has no waveform to work on"),
    "image augmentation of waveforms": (
        ["model=audionet", "augment=specaugment"],
        "augment.spectrogram has specaugment, but features=waveform has no spectrogram",
    ),
    "early stopping without validation": (
        ["split=official", "early_stopping.patience=3"],
        "early_stopping.patience=3: split=official has no validation",
    ),
    "early stopping on everything": (["split=all", "early_stopping.patience=3"], "split=all has no validation"),
    "body never trained": (
        ["trainer.max_epochs=5", "trainer.freeze_epochs=5"],
        "trainer.freeze_epochs=5: the body would never be trained in trainer.max_epochs=5 epochs",
    ),
    "section replaced by a number": (["loader=3"], "loader=3: wanted keys below it"),
    "section replaced by nothing": (["early_stopping=null"], "early_stopping=null: wanted keys below it"),
    "augmentation replaced by a number": (["augment.spectrogram=3"], "augment.spectrogram=3: wanted keys below it or null"),
    "part of an augmentation that is a number": (
        ["+augment.spectrogram.mine=3"],
        "augment.spectrogram.mine=3: wanted keys below it or null",
    ),
    "channels that are no list": (["model.channels=8"], "model.channels=8: wanted a list of one or more"),
    "no channels": (["model.channels=[]"], "model.channels=[]: wanted a list of one or more"),
    "a channel that is none": (["model.channels=[8,0]"], "model.channels.1=0: wanted a whole number of 1 or more"),
    "unknown subset": (["data=esc50", "data.subset=esc20"], "data.subset=esc20: wanted one of esc10 or null"),
    "synthetic clips that do not divide": (
        ["data=synthetic", "data.root=${data.creates}", "data.creates=x", "data.num_clips=399"],
        "data.num_clips=399: wanted a multiple of 50, 5 folds of 10 classes",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_value_is_named_with_what_was_wanted(name, problem):
    overrides, message = IMPOSSIBLE[name]
    said = problem(*overrides)
    assert message in said
    assert "\n" not in said


def test_a_module_that_is_not_python_is_named_with_its_line(problem, tmp_path, monkeypatch):
    (tmp_path / "halfway.py").write_text("x = 1\nclass Net(:\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    said = problem("model._target_=halfway.Net")
    assert "halfway.py line 2 is not Python" in said and "\n" not in said


def test_data_root_that_is_not_given_is_asked_for(compose):
    with pytest.raises(ConfigError, match=r"^data\.root needs a value; write data\.root=\.\.\.$"):
        check(compose("data=folder"))


def test_all_problems_are_reported_in_one_message(problem):
    said = problem(
        "fold=6",
        "seed=x",
        "features.f_max=30000",
        "augment=strong",
        "augment.mix.mixup.alpha=-1",
        "features.n_mels=0",
        "augment.spectrogram.time_mask.max_width=600",
        "data.root=/no/such/folder",
        "split=official",
        "early_stopping.patience=3",
        "resume=/no/such/run",
        "trainer.precision=half",
    )
    first, *lines = said.splitlines()
    assert first == "10 problems in the configuration:"
    assert len(lines) == 10
    for key in (
        "fold",
        "seed",
        "features.f_max",
        "augment.mix.mixup.alpha",
        "data.root",
        "early_stopping.patience",
        "resume",
        "trainer.precision",
        "features.n_mels",
        "augment.spectrogram.time_mask.max_width",
    ):
        assert sum(line.strip().startswith(f"{key}=") for line in lines) == 1


def test_a_widest_mask_that_just_fits_is_accepted(compose):
    check(
        compose(
            "augment=strong", "augment.spectrogram.time_mask.max_width=501", "augment.spectrogram.frequency_mask.max_width=128"
        )
    )
    check(compose("augment=specaugment", "augment.spectrogram.specaugment.T=501", "augment.spectrogram.specaugment.F=128"))


def test_the_frames_that_a_mask_is_measured_by_are_those_of_the_features(compose):
    from esc50.assembly.data import build_recipe
    from esc50.config.relations import Values, num_frames

    for overrides in ([], ["features.seconds=0.333", "features.hop_length=160"], ["features.sample_rate=32000"]):
        cfg = compose(*overrides)
        assert num_frames(Values(OmegaConf.to_container(cfg, resolve=True))) == build_recipe(cfg).stored_shape[1]


def test_nothing_derived_may_lie_inside_the_data(problem, sounds, compose, tmp_path):
    said = problem(f"paths.store={sounds}/store")
    assert said.startswith(f"paths.store={sounds}/store: lies inside data.root={sounds}")
    assert "paths.store" in problem(f"paths.data={sounds}")
    (tmp_path / "link").symlink_to(sounds)
    assert "lies inside" in problem(f"paths.store={tmp_path}/link/store")
    check(compose("data=folder", f"data.root={sounds}", f"paths.store={sounds}-store"))


def test_a_data_set_that_is_not_there_yet_is_accepted_where_it_will_be_written_itself(compose, tmp_path):
    check(compose("data=esc50", f"paths.data={tmp_path}/not_yet"))
    check(compose("data=synthetic", f"paths.data={tmp_path}/not_yet"))
    with pytest.raises(ConfigError, match="no such folder"):
        check(compose("data=esc50", f"data.root={tmp_path}/not_yet"))


def test_evaluation_wants_a_checkpoint_that_is_there(compose, sounds):
    for overrides, message in (
        ([], "checkpoint needs a value; write checkpoint=a run folder or checkpoint file"),
        (["checkpoint=/no/such"], "checkpoint=/no/such: no such file or folder"),
        ([f"checkpoint={sounds}", "data.root=/no/such"], "data.root=/no/such: no such file or folder"),
    ):
        with pytest.raises(ConfigError) as caught:
            check_command(compose(*overrides, name="evaluate"), "evaluate")
        assert str(caught.value) == message
    check_command(compose(f"checkpoint={sounds}", name="evaluate"), "evaluate")


def test_checking_imports_nothing_heavy():
    code = (
        "import sys\nimport esc50.config.door, esc50.config.messages\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & set(sys.argv[1:])))"
    )
    heavy = ["torch", "numpy", "librosa", "lightning", "scipy", "matplotlib", "soundfile", "sklearn", "PIL"]
    done = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
