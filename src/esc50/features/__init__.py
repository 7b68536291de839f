"""From waveforms to what a model sees, and the stores that keep it on disk."""
