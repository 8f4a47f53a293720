"""Nouns that all rooms share. Nothing here does I/O, reads a clock or needs pyarrow."""
