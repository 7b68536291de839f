"""Augmentations: batch in, batch out, on the batch's own device, only in training."""
