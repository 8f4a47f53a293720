"""Ports on the web: what servers give to whoever asks."""
