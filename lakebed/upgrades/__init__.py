"""Replaces one release by another: who runs which, and when newer forms may be written."""
