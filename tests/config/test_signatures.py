"""What a constructor takes is read from its source, as Python itself would say it, and nothing is imported for it."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hydra.utils import get_object

from esc50.config.kinds import Probability
from esc50.config.signatures import NotThereError, signature_of

CONF = Path(__file__).resolve().parents[2] / "conf"
TARGETS = sorted({name for path in CONF.rglob("*.yaml") for name in re.findall(r"_target_: ([\w.]+)", path.read_text("utf-8"))})


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write the module `mine` where Python finds it."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(text: str, name: str = "mine") -> None:
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        signature_of.cache_clear()

    yield write
    sys.modules.pop("mine", None)
    signature_of.cache_clear()


@pytest.mark.parametrize("target", TARGETS)
def test_every_constructor_of_ours_is_read_as_python_reads_it(target):
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(get_object(target)).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    found = signature_of(target)
    assert set(found.kinds) == set(parameters) or found.is_open
    if not found.is_open:
        assert found.required == {name for name, one in parameters.items() if one.default is one.empty}


def test_a_name_is_followed_through_other_packages():
    found = signature_of("torch.optim.AdamW")
    assert {"lr", "betas", "weight_decay"} <= set(found.kinds) and not found.is_open
    assert found.kinds["weight_decay"] is float
    assert {"limit_train_batches", "precision"} <= set(signature_of("lightning.pytorch.trainer.trainer.Trainer").kinds)


def test_types_of_ours_are_known_and_others_are_anything(module):
    module(
        "from esc50.config.kinds import Probability\nimport torch\n\n"
        "class Mine:\n"
        "    def __init__(self, p: Probability, *, width: 'int | None' = 1, x: torch.Tensor = 2, how: list[int] = 3): ...\n"
    )
    found = signature_of("mine.Mine")
    assert found.kinds["p"] == Probability and found.kinds["width"] == int | None and found.kinds["how"] == list[int]
    assert "Any" in str(found.kinds["x"])
    assert found.required == {"p"} and not found.is_open


def test_a_class_without_a_constructor_takes_what_its_base_takes(module):
    module("class Base:\n    def __init__(self, a, b=1): ...\n\nclass Mine(Base):\n    pass\n")
    assert set(signature_of("mine.Mine").kinds) == {"a", "b"}
    module("from torch import nn\n\nclass Mine(nn.Module):\n    pass\n")
    assert signature_of("mine.Mine").is_open


def test_keywords_of_any_name_leave_it_open(module):
    module("def mine(root, **more): ...\n")
    found = signature_of("mine.mine")
    assert found.is_open and found.required == {"root"}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nowhere.Mine", "no module named nowhere"),
        ("mine.Yours", "mine has no Yours"),
        ("esc50.models.melcnn", "a module, not a class"),
    ],
)
def test_a_name_that_means_nothing_is_said_so(target, message, module):
    module("class Mine: ...\n")
    with pytest.raises(NotThereError, match=message):
        signature_of(target)


def test_an_annotation_calls_nothing_but_limits(module):
    module("def mine(a: __import__('os').system('echo') = 1, b: open('x') = 2): ...\n")
    assert set(map(str, signature_of("mine.mine").kinds.values())) == {"typing.Any"}


def test_nothing_is_imported():
    code = (
        "import sys\nfrom esc50.config.signatures import signature_of\n"
        "for name in ('esc50.models.melcnn.MelCNN', 'torch.optim.AdamW', 'lightning.pytorch.trainer.trainer.Trainer'):\n"
        "    assert signature_of(name).kinds\n"
        "print(sorted({'torch', 'lightning', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
