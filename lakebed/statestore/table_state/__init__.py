"""The state of a table in SQLite: its layout, its proof of itself, and what is asked of it."""
