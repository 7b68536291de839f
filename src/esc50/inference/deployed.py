"""A trained model with everything before and after it inside: samples in, probabilities out."""

import torch
from torch import Tensor, nn

from esc50.features.device_logmel import LogMel
from esc50.inference.predictor import Predictor


class Deployed(nn.Module):
    """What `Predictor` computes, in torch's operations alone: waveforms `[batch, time]` within -1..1, at the model's rate and
    of its length, to probabilities `[batch, classes]`. Samples or grey levels are rounded as they are where clips are kept,
    so that the answers are those of the test."""

    def __init__(self, predictor: Predictor):
        super().__init__()
        self.front_end, self.model = predictor.network.front_end, predictor.network.model
        self.recipe, self.temperature = predictor.recipe, predictor.temperature
        self.log_mel = LogMel(self.recipe.log_mel).to(predictor.network.device) if self.recipe.keeps_images else None

    def forward(self, waveform: Tensor) -> Tensor:
        x = waveform.clamp(-1, 1)
        if self.log_mel is not None:
            mel = self.recipe.log_mel
            x = torch.round((self.log_mel(x) - mel.db_min) * (255 / (mel.db_max - mel.db_min))) * (1 / 255)
        else:
            x = self.front_end.spectrogram(torch.round(x * 32768).clamp(-32768, 32767) * (1 / 32768))
        return (self.model(self.front_end.normalize(x))["logits"] / self.temperature).softmax(dim=1)
