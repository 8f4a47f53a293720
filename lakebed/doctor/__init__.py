"""Finds what is wrong with a lake, where it lies and where it was deployed, and what cures it."""
