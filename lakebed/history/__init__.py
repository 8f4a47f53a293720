"""Keeps what became of jobs as a table of the lake itself."""
