"""Benchmarks: each prints figures beside the aim that they are held to."""
