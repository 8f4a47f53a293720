"""Reads a source for the pipelines of one process."""
