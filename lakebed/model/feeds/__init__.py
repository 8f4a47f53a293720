"""Nouns of feeds: positions, and what became of records."""
