"""Stored forms of releases, which each later release reads."""
