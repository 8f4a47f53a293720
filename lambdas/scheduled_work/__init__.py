"""Scheduled work on tables, of each kind: which tables it is due on, and the work itself."""
