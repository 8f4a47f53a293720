"""Rows in: sort them, write files for the leaves, commit them all at once."""
