"""The projector gets every clip's embedding, class and sprite; validation and test stand side by side, the last of each."""

import csv
import json
import logging
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from tensorboard.plugins.projector.projector_plugin import ProjectorPlugin
from torch.utils.tensorboard import SummaryWriter
from werkzeug.test import Client

from esc50.assembly.data import build_clips, build_recipe, build_rows, build_split
from esc50.assembly.retest import restore_task
from esc50.assembly.trainer import build_batches
from esc50.features.recipe import Recipe
from esc50.results.predictions import predictions_of, read_predictions
from esc50.runs import train as run
from esc50.training.checkpoint_files import load_checkpoint
from esc50.watch.embedding import Embedding, neighbours_agree, sprite
from esc50.watch.evaluation import Evaluation
from esc50.watch.projector import read_config, sprite_sheet, write_projection

PANEL = ("watch=none", "+watch/panels@watch.embedding=embedding", "watch.embedding.sprite_size=16")
NAMES = ("hiss", "hum", "whistle")


def table(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def squares(number: int, size: int = 8) -> np.ndarray:
    """Sprites of one grey each: the i-th is all i."""
    return np.tile(np.arange(number, dtype=np.uint8)[:, None, None, None], (1, size, size, 3))


@pytest.fixture(scope="module")
def ended(compose, tiny, tmp_path_factory) -> SimpleNamespace:
    """A run of three epochs with the panel, and what it was made of."""
    folder = tmp_path_factory.mktemp("run")
    cfg = compose(*tiny, *PANEL, "trainer.max_epochs=3")
    run.train(cfg, folder)
    clips = build_clips(cfg)
    return SimpleNamespace(
        folder=folder,
        cfg=cfg,
        clips=clips,
        split=build_split(cfg, clips),
        place=folder / "tensorboard",
        rows=build_rows(cfg, clips, build_recipe(cfg)),
    )


def embeddings_of(ended, checkpoint: str, role: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings and logits of a role's clips by the checkpoint, computed clip by clip."""
    task = restore_task(load_checkpoint(ended.folder / checkpoint)).eval()
    number = {clip.filename: index for index, clip in enumerate(ended.clips)}
    with torch.no_grad():
        outputs = [task(torch.from_numpy(ended.rows.take([number[clip.filename]]))) for clip in ended.split.roles()[role]]
    return (torch.cat([output["embedding"] for output in outputs]), torch.cat([output["logits"] for output in outputs]))


@pytest.mark.parametrize("role", ["val", "test"])
def test_the_tensor_file_equals_the_embeddings(ended, role):
    tested = json.loads((ended.folder / "metrics.json").read_text(encoding="utf-8"))["checkpoint"]
    expected, _ = embeddings_of(ended, "checkpoints/last.ckpt" if role == "val" else tested, role)
    found = np.array(table(ended.place / "embedding" / role / "tensors.tsv"), dtype=np.float32)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("role", ["val", "test"])
def test_the_metadata_name_every_clip_with_its_class_and_prediction(ended, role):
    tested = json.loads((ended.folder / "metrics.json").read_text(encoding="utf-8"))["checkpoint"]
    _, logits = embeddings_of(ended, "checkpoints/last.ckpt" if role == "val" else tested, role)
    header, *rows = table(ended.place / "embedding" / role / "metadata.tsv")
    assert header == ["class", "predicted", "filename"]
    assert rows == [
        [clip.category, NAMES[guess], clip.filename]
        for clip, guess in zip(ended.split.roles()[role], logits.argmax(dim=1).tolist(), strict=True)
    ]
    if role == "test":
        predictions = read_predictions(ended.folder / "predictions.csv")
        assert [row[1] for row in rows] == [NAMES[guess] for guess in predictions.predicted]


def test_the_projector_serves_validation_and_test_side_by_side(ended):
    serves = ProjectorPlugin(SimpleNamespace(data_provider=None, logdir=str(ended.place))).get_plugin_apps()
    assert Client(serves["/runs"]).get("/runs").json == ["."]
    entries = Client(serves["/info"]).get("/info?run=.").json["embeddings"]
    assert [entry["tensorName"] for entry in entries] == ["embedding/val", "embedding/test"]
    for entry in entries:
        role = entry["tensorName"].rpartition("/")[2]
        query = f"?run=.&name={entry['tensorName']}"
        assert entry["tensorShape"][0] == 6 and entry["sprite"]["singleImageDim"] == [16, 16]
        served = np.frombuffer(Client(serves["/tensor"]).get("/tensor" + query).data, dtype=np.float32)
        written = np.array(table(ended.place / "embedding" / role / "tensors.tsv"), dtype=np.float32)
        np.testing.assert_array_equal(served.reshape(entry["tensorShape"]), written)
        metadata = Client(serves["/metadata"]).get("/metadata" + query).text.splitlines()
        assert [line.split("\t")[2] for line in metadata[1:]] == [clip.filename for clip in ended.split.roles()[role]]
        assert Client(serves["/sprite_image"]).get("/sprite_image" + query).data.startswith(b"\x89PNG")


def test_the_share_of_neighbours_stands_beside_it(ended, events):
    scalars = events(ended.place).scalars
    for role, step in (("val", 8), ("test", 9)):
        vectors = np.array(table(ended.place / "embedding" / role / "tensors.tsv"), dtype=np.float32)
        targets = np.array([clip.target for clip in ended.split.roles()[role]])
        assert scalars[f"embedding/neighbours_{role}"] == [(step, pytest.approx(neighbours_agree(vectors, targets)))]


def test_the_sprites_show_the_clips(ended):
    sheet = np.asarray(Image.open(ended.place / "embedding" / "val" / "sprite.png"))
    assert sheet.shape == (48, 48, 3)  # three times three of 16, for six clips
    number = {clip.filename: index for index, clip in enumerate(ended.clips)}
    for i, clip in enumerate(ended.split.val):
        row, column = divmod(i, 3)
        found = sheet[16 * row : 16 * (row + 1), 16 * column : 16 * (column + 1)]
        stored = ended.rows.take([number[clip.filename]])[0]
        np.testing.assert_array_equal(found, sprite(stored, build_recipe(ended.cfg), size=16))
        assert len(np.unique(found.reshape(-1, 3), axis=0)) > 20
    assert not sheet[32:].any()


def test_a_resumed_run_keeps_the_last_ones_only(compose, tiny, tmp_path, events):
    settings = (*tiny, *PANEL, "schedule=constant")
    run.train(compose(*settings, "trainer.max_epochs=1"), tmp_path)
    first = (tmp_path / "tensorboard" / "embedding" / "val" / "tensors.tsv").read_bytes()
    run.train(compose(*settings, "trainer.max_epochs=2", f"resume={tmp_path}"), tmp_path)
    place = tmp_path / "tensorboard"
    assert (place / "embedding" / "val" / "tensors.tsv").read_bytes() != first
    assert [entry.tensor_name for entry in read_config(place / "projector_config.pbtxt").embeddings] == [
        "embedding/val",
        "embedding/test",
    ]
    assert {path.name for path in place.iterdir() if path.is_dir()} == {"embedding"}
    assert [step for step, _ in events(place).scalars["embedding/neighbours_val"]] == [2, 5]


@pytest.mark.parametrize("kind", ["waveform", "logmel"])
def test_networks_that_get_samples_have_embeddings_and_sprites_too(compose, tiny, tmp_path, kind):
    of_images = ("features.f_max", "features.n_", "features.win", "features.hop", "model.")
    overrides = tiny if kind == "logmel" else [part for part in tiny if not part.startswith(of_images)]
    chosen = ["features=logmel"] if kind == "logmel" else ["features=waveform", "model=audionet"]
    run.train(compose(*overrides, *PANEL, *chosen, "trainer.max_epochs=1"), tmp_path)
    place = tmp_path / "tensorboard" / "embedding" / "test"
    assert len(table(place / "tensors.tsv")) == len(table(place / "metadata.tsv")) - 1 == 6
    sheet = np.asarray(Image.open(place / "sprite.png"))
    assert sheet.shape == (48, 48, 3) and len(np.unique(sheet.reshape(-1, 3), axis=0)) > 100


def test_of_many_clips_some_are_taken_at_even_distances(ended, tmp_path):
    task = restore_task(load_checkpoint(ended.folder / "checkpoints" / "last.ckpt"))
    evaluation = evaluation_of(ended, task)
    with SummaryWriter(tmp_path) as writer:
        Embedding(every_n_epochs=1, max_clips=3, sprite_size=8).write(writer, evaluation)
    names = [row[2] for row in table(tmp_path / "embedding" / "val" / "metadata.tsv")[1:]]
    assert names == [ended.split.val[i].filename for i in (0, 2, 5)]


def evaluation_of(ended, task) -> Evaluation:
    data = build_batches(ended.cfg, ended.clips, ended.split)
    predictions = predictions_of(
        ended.split.val,
        np.array([clip.target for clip in ended.split.val]),
        np.full((len(ended.split.val), 3), 1 / 3),
        names=NAMES,
    )
    task.eval().on_test_epoch_start()
    with torch.no_grad():
        for batch in data.in_order("val"):
            task.test_step(batch, 0)
    return Evaluation(role="val", step=0, predictions=predictions, data=data, task=task)


def test_a_network_without_embeddings_costs_a_line_in_the_log_and_no_more(ended, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    task = restore_task(load_checkpoint(ended.folder / "checkpoints" / "last.ckpt"))
    forward = task.model.forward
    task.model.forward = lambda x: {"logits": forward(x)["logits"]}
    with SummaryWriter(tmp_path) as writer:
        Embedding(every_n_epochs=1, max_clips=3, sprite_size=8).write(writer, evaluation_of(ended, task))
    assert "no embeddings in TensorBoard: the network gives none" in caplog.messages
    assert not (tmp_path / "embedding").exists()


def test_neighbours_by_hand():
    vectors = np.array([[1.0, 0.0], [5.0, 0.1], [0.0, 1.0], [0.1, 9.0], [0.3, 1.0]])  # by direction: two and three
    assert neighbours_agree(vectors, np.array([0, 0, 1, 1, 1])) == 1.0
    assert neighbours_agree(vectors, np.array([0, 1, 2, 2, 2])) == pytest.approx(3 / 5)
    assert neighbours_agree(np.zeros((3, 2)), np.array([0, 1, 2])) == 0.0


def test_a_sprite_has_low_frequencies_below():
    levels = np.zeros((32, 40), dtype=np.uint8)
    levels[:8] = 200
    small = sprite(levels, Recipe(kind="mel_png", sample_rate=8000, seconds=1.0, mel=None), size=16).astype(int).sum(axis=2)
    assert small[12:].min() > small[:12].max() == small[:12].min()


def test_a_sheet_holds_the_sprites_row_by_row():
    sheet = sprite_sheet(squares(5, size=4))
    assert sheet.shape == (12, 12, 3)
    assert sheet[::4, ::4, 0].tolist() == [[0, 1, 2], [3, 4, 0], [0, 0, 0]]
    assert (sheet[:4, 4:8] == 1).all()


def test_a_projection_replaces_the_one_of_its_name_and_leaves_the_others(tmp_path):
    rows = [("cat", "a.wav"), ("dog", "b.wav")]
    for name, factor in (("embedding/val", 1), ("other", 2), ("embedding/val", 3)):
        write_projection(
            tmp_path, name, factor * np.eye(2, dtype=np.float32), rows, columns=("class", "filename"), sprites=squares(2)
        )
    entries = {entry.tensor_name: entry for entry in read_config(tmp_path / "projector_config.pbtxt").embeddings}
    assert {name: float(table(tmp_path / entry.tensor_path)[0][0]) for name, entry in entries.items()} == {
        "embedding/val": 3.0,
        "other": 2.0,
    }
    assert not list(tmp_path.rglob("*.part*"))


def test_tabs_and_line_breaks_in_names_do_not_break_the_table(tmp_path):
    write_projection(
        tmp_path,
        "x",
        np.eye(2, dtype=np.float32),
        [("a\tcat", "1\n.wav"), ("Hüte „hoch“", "2.wav")],
        columns=("class", "filename"),
        sprites=squares(2),
    )
    assert table(tmp_path / "x" / "metadata.tsv") == [["class", "filename"], ["a cat", "1 .wav"], ["Hüte „hoch“", "2.wav"]]


def test_numbers_read_back_exactly(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(20, 7)).astype(np.float32) * np.float32(1e-3)
    write_projection(tmp_path, "x", vectors, [("a", "b")] * 20, columns=("c", "d"), sprites=squares(20))
    np.testing.assert_array_equal(np.array(table(tmp_path / "x" / "tensors.tsv"), dtype=np.float32), vectors)
