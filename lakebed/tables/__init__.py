"""A table's life: created, found, listed, dropped."""
