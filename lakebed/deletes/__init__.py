"""Rows go: whole ranges of keys by one entry of the log, others by rewriting the files they lie
in."""
