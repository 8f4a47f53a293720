"""Submitted files: which tables have some, and batches of them."""
