"""Checks changes of a table, its fields and its processing: what was asked, and what follows."""
