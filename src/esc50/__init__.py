"""Train, compare and explain environmental-sound classifiers."""
