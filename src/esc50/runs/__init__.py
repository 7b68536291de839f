"""A run, and many of them: trained, tested, gone on with, swept."""
