"""Checks a user's network before tasks run in it."""
