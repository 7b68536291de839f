"""An exported file answers as the model it was made from, and says so with numbers that are true."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import soundfile
import torch

from esc50.errors import ConfigError, DataError, TrainingError
from esc50.inference.export import before_first_convolution
from esc50.results.predictions import read_predictions
from esc50.runs import export as exporting
from esc50.runs import test as testing
from esc50.runs import train as run
from esc50.training.checkpoint_files import find_checkpoint, load_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # the exporters' own
MODELS = {"mel_png": (), "logmel": ("features=logmel",), "waveform": ("model=audionet",)}
SPECTROGRAM = ("model.", "features.n_", "features.f_max", "features.win", "features.hop")  # keys that waveforms do not have


@pytest.fixture(scope="module")
def trained_with(compose, tiny, tmp_path_factory):
    """Run folders by the kind of features, trained when they are asked for."""
    made = {}

    def of(kind: str):
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind)
            shape = [one for one in tiny if kind != "waveform" or not one.startswith(SPECTROGRAM)]
            run.train(compose(*MODELS[kind], *shape, "watch=none"), made[kind])
        return made[kind]

    return of


def export(folder, place, **options) -> dict:
    chosen = {"format": "onnx", "quantize": False, "source": None, "root": None} | options
    exporting.export(folder, place, **chosen)
    return json.loads((place / "model.json").read_text(encoding="utf-8"))


def clips_of_the_test(folder, sounds) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Waveforms, targets and probabilities of the test clips, from the run's record."""
    predictions = read_predictions(folder / "predictions.csv")
    paths = [next(sounds.rglob(filename.rpartition("/")[2])) for filename in predictions.filenames]
    return (np.stack([soundfile.read(path, dtype="float32")[0] for path in paths]), predictions.targets, predictions.probs)


def at_temperature(probs: np.ndarray, temperature: float) -> np.ndarray:
    scaled = probs ** (1 / temperature)
    return scaled / scaled.sum(axis=1, keepdims=True)


def compare_with_test(folder, place, sounds, told: dict) -> None:
    """onnxruntime alone, fed with the files' samples, gives the probabilities of the test, one clip at a time and all at once."""
    import onnxruntime

    session = onnxruntime.InferenceSession(place / "model.onnx", providers=["CPUExecutionProvider"])
    waveforms, _, probs = clips_of_the_test(folder, sounds)
    assert waveforms.shape[1] == told["num_samples"] and session.get_inputs()[0].name == told["input"] == "waveform"
    wanted = at_temperature(probs, told["temperature"])
    together = session.run([told["output"]], {"waveform": waveforms})[0]
    alone = np.concatenate([session.run(None, {"waveform": one[None]})[0] for one in waveforms])
    np.testing.assert_allclose(together, wanted, atol=1e-4)
    np.testing.assert_allclose(alone, together, atol=1e-5)


def test_onnx_answers_as_the_test_did_for_any_batch_and_says_how_near(trained_with, sounds, tmp_path):
    told = export(trained_with("mel_png"), tmp_path)
    compare_with_test(trained_with("mel_png"), tmp_path, sounds, told)
    assert told["labels"] == ["hiss", "hum", "whistle"] and told["sample_rate"] == 8000 and told["calibrated"]
    assert told["features"]["mel"]["n_mels"] == 32 and told["score"]["clips"] == 6
    assert 0 <= told["largest_difference"] <= 1e-4 and told["compared_on"] == "6 test clips"
    assert told["bytes"] == (tmp_path / "model.onnx").stat().st_size and told["milliseconds"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["logmel", "waveform"])
def test_other_features_are_inside_too(kind, trained_with, sounds, tmp_path):
    told = export(trained_with(kind), tmp_path)
    compare_with_test(trained_with(kind), tmp_path, sounds, told)
    assert told["features"]["kind"] == kind
    assert (told["features"]["mel"] or {}).get("n_mels") == (None if kind == "waveform" else 32)


def test_other_data_and_foreign_calls_are_refused(trained_with, sounds, tmp_path):
    shutil.copytree(sounds, tmp_path / "other")
    (tmp_path / "other" / "hiss").rename(tmp_path / "other" / "zebra")
    with pytest.raises(ConfigError, match=r"no clips to compare with .*the checkpoint knows hiss, hum, whistle"):
        export(trained_with("mel_png"), tmp_path, root=str(tmp_path / "other"))
    stored = load_checkpoint(find_checkpoint(trained_with("mel_png")))
    trap = tmp_path / "trap"
    stored["esc50"]["config"]["data"]["seed"] = {"_target_": "pathlib.Path.touch", "_args_": [str(trap)]}
    torch.save(stored, tmp_path / "evil.ckpt")
    for use in (lambda: export(tmp_path / "evil.ckpt", tmp_path), lambda: testing.evaluate(tmp_path / "evil.ckpt", tmp_path)):
        with pytest.raises(DataError, match=r"pathlib\.Path\.touch as its data, which is none"):
            use()
    assert not trap.exists() and not (tmp_path / "model.onnx").exists()


@pytest.mark.slow
def test_eight_bits_state_the_accuracy_that_they_have(trained_with, sounds, tmp_path):
    import onnx
    import onnxruntime

    told = export(trained_with("mel_png"), tmp_path, quantize=True)["int8"]
    waveforms, targets, probs = clips_of_the_test(trained_with("mel_png"), sounds)
    session = onnxruntime.InferenceSession(tmp_path / "model_int8.onnx", providers=["CPUExecutionProvider"])
    labels = session.run(None, {"waveform": waveforms})[0].argmax(axis=1)
    assert told["accuracy_after"] == (labels == targets).mean()
    assert told["accuracy_before"] == (probs.argmax(axis=1) == targets).mean()
    assert told["same_label"] == (labels == probs.argmax(axis=1)).mean()
    nodes = onnx.load(tmp_path / "model_int8.onnx").graph.node
    made_by = {output: node.op_type for node in nodes for output in node.output}
    convolutions = [node for node in nodes if node.op_type == "Conv"]
    assert convolutions and all(made_by[node.input[1]] == "DequantizeLinear" for node in convolutions)
    (bands,) = (node for node in nodes if node.op_type == "MatMul")
    assert "DequantizeLinear" not in {made_by.get(name) for name in bands.input}  # the spectrogram keeps its precision


@pytest.mark.slow
def test_a_file_of_torch_needs_torch_alone(trained_with, sounds, tmp_path):
    told = export(trained_with("mel_png"), tmp_path, format="torch")
    waveforms, _, probs = clips_of_the_test(trained_with("mel_png"), sounds)
    np.save(tmp_path / "waveforms.npy", waveforms)
    program = (
        "import sys, numpy, torch; m = torch.export.load('model.pt2').module();"
        "numpy.save('out.npy', m(torch.from_numpy(numpy.load('waveforms.npy'))).detach().numpy());"
        "assert 'esc50' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), at_temperature(probs, told["temperature"]), atol=1e-4)


def test_a_file_that_answers_otherwise_is_not_left_behind(trained_with, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "write_onnx", lambda deployed, path: path.write_bytes(b"of another model"))
    monkeypatch.setattr(exporting, "run_onnx", lambda path: lambda waveforms: np.full((len(waveforms), 3), 1 / 3))
    with pytest.raises(TrainingError, match=r"model.onnx answers differently: by up to .* on 6 test clips"):
        export(trained_with("mel_png"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_the_data_recordings_are_asked_for_and_then_do(trained_with, sounds, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match=r"no clips to compare with .*; give data.root=, or input=recordings"):
        export(trained_with("mel_png"), tmp_path, root=str(tmp_path / "gone"))
    monkeypatch.setattr(exporting, "write_onnx", lambda deployed, path: path.write_bytes(b"as good"))
    monkeypatch.setattr(exporting, "run_onnx", lambda path: exporting.run_predictor(exporting.load(trained_with("mel_png"))))
    assert export(trained_with("mel_png"), tmp_path, source=str(sounds / "hum"))["compared_on"] == "10 recordings"


def test_the_spectrogram_is_what_lies_before_the_first_convolution():
    from onnx import helper

    nodes = [
        helper.make_node("STFT", ["x"], ["a"], "stft"),
        helper.make_node("MatMul", ["a", "bands"], ["b"], "mel"),
        helper.make_node("Conv", ["b", "w"], ["c"], "conv"),
        helper.make_node("Relu", ["c"], ["d"], "relu"),
        helper.make_node("MatMul", ["d", "v"], ["y"], "head"),
    ]
    assert before_first_convolution(helper.make_graph(nodes, "net", [], [])) == ["mel", "stft"]
    assert before_first_convolution(helper.make_graph(nodes[3:], "net", [], [])) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("format=tflite",), "format=tflite: wanted one of onnx, torch"),
        (("format=torch", "quantize=true"), "quantize=true: eight bits are for format=onnx"),
        (("input=nowhere",), "input=nowhere: no such file or folder"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(settings, message, trained_with, command, tmp_path):
    ended = command("scripts/export.py", f"checkpoint={trained_with('mel_png')}", *settings, "hydra.run.dir=out", cwd=tmp_path)
    assert (ended.status, ended.err) == (2, f"error: {message}\n")
