"""A trained model as one file for other programs, compared with what it was made from."""

import contextlib
import logging
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from esc50.errors import ConfigError, require
from esc50.files import write_atomically
from esc50.inference.deployed import Deployed
from esc50.inference.predictor import Predictor
from esc50.results.record import versions

INPUT, OUTPUT = "waveform", "probabilities"
NUM_TIMED = 10  # answers whose median time is stated
Run = Callable[[np.ndarray], np.ndarray]  # waveforms [batch, time] to probabilities [batch, classes]


def write_onnx(deployed: Deployed, path: Path) -> None:
    """One ONNX file: input `waveform` `[batch, time]` float32, output `probabilities` `[batch, classes]`, any batch size.
    Raises ConfigError where ONNX is not installed, or has no word for what the network does."""
    require("format=onnx", "onnx", "onnxruntime", "onnxscript")
    with _quiet():
        try:
            program = torch.onnx.export(
                deployed,
                (_example(deployed),),
                dynamo=True,
                input_names=[INPUT],
                output_names=[OUTPUT],
                dynamic_shapes={INPUT: {0: torch.export.Dim("batch")}},
                verbose=False,
            )
        except torch.onnx.OnnxExporterError as error:
            raise ConfigError(
                f"format=onnx: the network cannot be written as ONNX ({str(error).splitlines()[0]}); try format=torch"
            ) from error
    assert program is not None
    with write_atomically(path) as temporary:
        program.save(temporary)


def write_torch(deployed: Deployed, path: Path) -> None:
    """One file of torch.export, the same input and output; `torch.export.load(path).module()` needs nothing of ours."""
    with _quiet():
        program = torch.export.export(
            deployed, (_example(deployed),), strict=False, dynamic_shapes={INPUT: {0: torch.export.Dim("batch")}}
        )
    with write_atomically(path) as temporary, _quiet():
        torch.export.save(program, temporary)


def write_int8(source: Path, path: Path, clips: Sequence[np.ndarray]) -> None:
    """The ONNX file `source` with weights and activations of its convolutions and dense layers in eight bits, ranges taken
    from waveforms `[time]`; the spectrogram keeps its 32 bits."""
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Clips(CalibrationDataReader):
        def __init__(self) -> None:
            self._next = iter(clips)

        def get_next(self) -> dict[str, np.ndarray] | None:
            clip = next(self._next, None)
            return None if clip is None else {INPUT: clip[None]}

    with write_atomically(path) as temporary, _quiet():
        quantize_static(
            source,
            temporary,
            Clips(),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=["Conv", "Gemm", "MatMul"],
            nodes_to_exclude=before_first_convolution(onnx.load(source).graph),
        )


def before_first_convolution(graph: Any) -> list[str]:
    """Names of the nodes of an ONNX graph whose output reaches its first convolution: the spectrogram."""
    made_by = {output: node for node in graph.node for output in node.output}
    first = next((node for node in graph.node if node.op_type == "Conv"), None)
    found, open_ = set(), list(first.input) if first is not None else []
    while open_:
        node = made_by.get(open_.pop())
        if node is not None and node.name not in found:
            found.add(node.name)
            open_ += node.input
    return sorted(found)


def run_onnx(path: Path) -> Run:
    """Answers of an ONNX file by onnxruntime on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda waveforms: session.run([OUTPUT], {INPUT: waveforms})[0]


def run_torch(path: Path) -> Run:
    """Answers of a file of torch.export on the CPU."""
    module = torch.export.load(path).module()

    @torch.no_grad()
    def run(waveforms: np.ndarray) -> np.ndarray:
        return module(torch.from_numpy(waveforms)).numpy()

    return run


def run_predictor(predictor: Predictor) -> Run:
    """Answers of the model as `scripts/predict.py` gives them."""
    return lambda waveforms: predictor.probabilities(np.stack([predictor.recipe.from_waveform(one) for one in waveforms]))


def answers(run: Run, clips: Sequence[np.ndarray], *, batch_size: int = 8) -> np.ndarray:
    """Probabilities `[clips, classes]` of waveforms `[time]`."""
    return np.concatenate([run(np.stack(clips[start : start + batch_size])) for start in range(0, len(clips), batch_size)])


def milliseconds(run: Run, clips: Sequence[np.ndarray]) -> float:
    """Median time of an answer to one clip."""
    run(clips[0][None])
    times = []
    for clip in clips[:NUM_TIMED]:
        started = time.perf_counter()
        run(clip[None])
        times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


def facts(predictor: Predictor) -> dict[str, Any]:
    """What another program must know to use the file: labels in the order of the output, and how to make the input."""
    recipe = predictor.recipe
    return {
        "labels": list(predictor.class_names),
        "sample_rate": recipe.sample_rate,
        "num_samples": recipe.num_samples,
        "pad": recipe.pad,
        "channels": "averaged",
        "input": INPUT,
        "output": OUTPUT,
        "features": asdict(recipe),
        "normalization": {
            "mean": predictor.network.front_end.mean.flatten().tolist(),
            "std": predictor.network.front_end.std.flatten().tolist(),
        },
        "temperature": predictor.temperature,
        "calibrated": predictor.is_calibrated,
        "score": predictor.description.get("score"),
        "scored_by": predictor.description.get("scored_by"),
        "versions": {"trained": predictor.description["versions"], "exported": versions()},
    }


def _example(deployed: Deployed) -> torch.Tensor:
    return torch.zeros(2, deployed.recipe.num_samples)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Exporters talk about themselves; what fails raises."""
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)
