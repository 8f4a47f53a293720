"""Answers queries that come as messages."""
