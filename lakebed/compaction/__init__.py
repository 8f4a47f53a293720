"""Fewer files: choose them, claim them, merge them, replace them."""
