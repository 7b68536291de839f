"""Measurements, one module a question; scripts/benchmark.py only calls them."""
