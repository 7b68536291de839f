"""From recordings on disk to clips, folds and samples."""
