"""The training loop: task, optimisers, schedules, checkpoints, learning-rate search."""
