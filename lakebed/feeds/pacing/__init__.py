"""Decides what is done while a source is faster than its table, and how fast it may be read."""
