"""Precision: what is asked for, else bfloat16 where the hardware has it."""

import pytest
import torch

from esc50.errors import ConfigError
from esc50.training import precision
from esc50.training.precision import LIGHTNING_NAMES, available, check_device, cpu_flags, resolve_precision

AMX, AVX512, PLAIN = frozenset({"amx_bf16", "avx2"}), frozenset({"avx512_bf16"}), frozenset({"avx2", "avx512f"})


def machine(monkeypatch, *, flags: frozenset[str], gpu: bool | None = None, mps: bool = False) -> None:
    """Pretend: the CPU's `flags`; `gpu` None for no GPU, else whether it has bfloat16; Apple's GPU."""
    monkeypatch.setattr(precision, "cpu_flags", lambda: flags)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu is not None)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: bool(gpu) or including_emulation)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("has", "accelerator", "expected", "reason"),
    [
        ({"flags": PLAIN}, "auto", "float32", "neither"),
        ({"flags": frozenset()}, "auto", "float32", "neither"),
        ({"flags": AMX}, "auto", "bfloat16", "AMX"),
        ({"flags": AVX512}, "cpu", "bfloat16", "AVX512-BF16"),
        ({"flags": PLAIN, "gpu": True}, "auto", "bfloat16", "the GPU has it"),
        ({"flags": PLAIN, "gpu": True}, "cuda", "bfloat16", "the GPU has it"),
        ({"flags": AMX, "gpu": False}, "gpu", "float32", "the GPU has no bfloat16"),  # emulation would be slower than float32
        ({"flags": PLAIN, "gpu": True}, "cpu", "float32", "neither"),
        ({"flags": AMX, "gpu": False}, "cpu", "bfloat16", "AMX"),
        ({"flags": AMX, "mps": True}, "auto", "float32", "not tried"),
        ({"flags": AMX, "mps": True}, "mps", "float32", "not tried"),
        ({"flags": AMX, "mps": True}, "cpu", "bfloat16", "AMX"),
    ],
)
def test_auto_follows_the_device_that_will_train(monkeypatch, has, accelerator, expected, reason):
    machine(monkeypatch, **has)
    found, why = resolve_precision("auto", model="auto", accelerator=accelerator)
    assert found == expected
    assert reason in why


@pytest.mark.parametrize("requested", ["float32", "bfloat16"])
@pytest.mark.parametrize("model", ["auto", "float32", "bfloat16"])
def test_what_is_asked_for_wins_on_any_machine(monkeypatch, requested, model):
    machine(monkeypatch, flags=AMX, gpu=True)
    assert resolve_precision(requested, model=model, accelerator="auto") == (requested, "asked for by trainer.precision")


@pytest.mark.parametrize("model", ["float32", "bfloat16"])
def test_a_model_s_own_wish_comes_before_the_hardware(monkeypatch, model):
    machine(monkeypatch, flags=AMX if model == "float32" else PLAIN)
    assert resolve_precision("auto", model=model, accelerator="auto") == (model, "asked for by model.precision")


def test_flags_are_read_by_the_kernel_s_names(tmp_path, monkeypatch):
    listing = tmp_path / "cpuinfo"
    listing.write_text("processor\t: 0\nflags\t\t: fpu avx2 amx_bf16\n\nprocessor\t: 1\nflags\t\t: fpu\n")
    monkeypatch.setattr(precision, "Path", lambda _: listing)
    assert cpu_flags() == {"fpu", "avx2", "amx_bf16"}
    listing.write_text("processor: 0\nFeatures: fp asimd\n")  # as on ARM
    assert cpu_flags() == frozenset()
    listing.unlink()
    assert cpu_flags() == frozenset()


@pytest.mark.parametrize(("name", "dtype"), [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_lightning_computes_in_the_precision_named(name, dtype):
    from lightning.fabric import Fabric

    fabric = Fabric(accelerator="cpu", precision=LIGHTNING_NAMES[name])
    layer = torch.nn.Linear(2, 2)
    with fabric.autocast():
        assert layer(torch.ones(1, 2)).dtype == dtype
    assert layer.weight.dtype == torch.float32  # mixed: what is learnt stays in full precision


@pytest.mark.parametrize(
    ("has", "accelerator", "expected"),
    [
        ({"gpu": True}, "gpu", "gpu"),
        ({"gpu": True}, "cuda", "cuda"),
        ({"gpu": True}, "mps", "auto"),
        ({}, "gpu", "auto"),
        ({}, "cuda", "auto"),
        ({"mps": True}, "gpu", "gpu"),
        ({"mps": True}, "mps", "mps"),
        ({}, "cpu", "cpu"),
        ({"gpu": True}, "cpu", "cpu"),
        ({}, "auto", "auto"),
    ],
)
def test_a_checkpoint_from_elsewhere_is_tested_on_what_is_here(monkeypatch, has, accelerator, expected):
    machine(monkeypatch, flags=PLAIN, **has)
    assert available(accelerator) == expected


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"accelerator": "tpu"}, "trainer.accelerator=tpu"),
        ({"accelerator": "abacus"}, "trainer.accelerator=abacus"),
        ({"strategy": "nonsense"}, "trainer.strategy=nonsense"),
    ],
)
def test_a_device_that_is_not_here_is_one_line(asked, named):
    with pytest.raises(ConfigError) as refusal:
        check_device(**({"accelerator": "cpu", "devices": 1, "strategy": "auto"} | asked))
    assert named in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_the_cpu_is_always_here():
    check_device(accelerator="cpu", devices=1, strategy="auto")


def test_a_compiled_model_is_trained_in_float32_on_the_cpu(monkeypatch):
    monkeypatch.setattr("esc50.training.precision.cpu_flags", lambda: frozenset({"avx512_bf16"}))
    assert resolve_precision("auto", model="auto", accelerator="cpu")[0] == "bfloat16"
    assert resolve_precision("auto", model="auto", accelerator="cpu", compiled=True)[0] == "float32"
