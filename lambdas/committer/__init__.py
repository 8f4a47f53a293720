"""Commits of many go into one entry of the log."""
