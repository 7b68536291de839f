"""While the body is frozen a clip's features are computed once, and nothing else changes."""

import lightning as L
import numpy as np
import pytest
import torch
from torch import nn

from esc50.augment.mix import Mixup
from esc50.batches import ClipBatches, ClipDataset
from esc50.data.clip import Clip
from esc50.data.folds import Split
from esc50.features.front_end import FrontEnd
from esc50.features.recipe import Recipe
from esc50.training.embeddings import embed_all
from esc50.training.task import Classifier

NUM_CLIPS, NUM_CLASSES, TIME = 20, 3, 64


class Rows:
    values = np.random.default_rng(0).integers(-9000, 9000, (NUM_CLIPS, TIME)).astype(np.int16)

    def take(self, indices):
        return self.values[np.asarray(indices)]


class Counting(nn.Module):
    """A small net with batch normalisation that counts how many clips its body has seen."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(TIME, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(16, NUM_CLASSES))
        self.seen = 0

    def forward(self, x):
        self.seen += len(x)
        embedding = self.body(x)
        return {"logits": self.head(embedding), "embedding": embedding}


def train(*, cache_frozen: bool, max_epochs: int, freeze_epochs: int, augment=None):
    clips = tuple(
        Clip(filename=f"{i}.wav", path=f"{i}.wav", target=i % NUM_CLASSES, category=str(i % NUM_CLASSES), fold=1, source=str(i))
        for i in range(NUM_CLIPS)
    )
    torch.manual_seed(0)
    front_end = FrontEnd(Recipe(kind="waveform", sample_rate=TIME, seconds=1.0), normalization="none")
    task = Classifier(
        Counting(),
        front_end,
        num_classes=NUM_CLASSES,
        seed=3,
        augment=augment,
        freeze_epochs=freeze_epochs,
        optimizer=lambda model: torch.optim.SGD([{"params": model.parameters(), "lr": 1e-2}]),
        schedule=lambda progress: 1.0,
        cache_frozen=cache_frozen,
    )
    split = Split(protocol="holdout", train=clips[:14], val=clips[14:])
    trainer = L.Trainer(
        max_epochs=max_epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(task, datamodule=ClipBatches(clips, Rows(), split, batch_size=4, seed=3))
    return task, trainer


@pytest.mark.filterwarnings(
    "ignore:.*does not have many workers", "ignore:.*smaller than the logging interval", "ignore:.*treespec"
)
class TestFrozenPhase:
    @pytest.mark.parametrize("max_epochs", [3, 5])
    def test_results_are_those_of_recomputing(self, max_epochs):
        cached, cached_trainer = train(cache_frozen=True, max_epochs=max_epochs, freeze_epochs=3)
        plain, plain_trainer = train(cache_frozen=False, max_epochs=max_epochs, freeze_epochs=3)
        for name, value in plain.state_dict().items():
            torch.testing.assert_close(cached.state_dict()[name], value, rtol=1e-5, atol=1e-6, msg=name)
        losses = [float(trainer.callback_metrics["val_loss"]) for trainer in (cached_trainer, plain_trainer)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)

    def test_the_body_sees_every_clip_once(self):
        task, _ = train(cache_frozen=True, max_epochs=4, freeze_epochs=4)
        assert task.model.seen == NUM_CLIPS

    def test_after_unfreezing_the_body_is_asked_again(self):
        task, _ = train(cache_frozen=True, max_epochs=4, freeze_epochs=2)
        assert task.model.seen == NUM_CLIPS + 2 * NUM_CLIPS

    def test_with_augmentation_nothing_is_reused(self):
        task, _ = train(cache_frozen=True, max_epochs=2, freeze_epochs=2, augment={"mix": {"mixup": Mixup(alpha=0.2)}})
        assert task.model.seen == 2 * NUM_CLIPS


def test_embeddings_are_found_by_the_number_of_the_clip():
    dataset = ClipDataset(Rows(), np.zeros(NUM_CLIPS, dtype=np.int64), [7, 3, 11, 0, 19])
    embeddings = embed_all(
        lambda stored: stored.float(), dataset, batch_size=2, device=torch.device("cpu"), context=torch.no_grad
    )
    wanted = torch.tensor([0, 19, 7])
    assert torch.equal(embeddings.of(wanted), torch.from_numpy(Rows.values[wanted.numpy()]).float())
