"""Keeps what is pushed into a feed as segments before its sender hears success, then lands it."""
