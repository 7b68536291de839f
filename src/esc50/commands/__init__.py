"""What can be typed, one module a command: it reads its configuration, checks it, calls what does the work, and prints."""
