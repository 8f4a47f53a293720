"""Ports on the web: files that servers give without credentials."""
