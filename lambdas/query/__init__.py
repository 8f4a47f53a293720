"""Rows out, for whoever sends a message."""
