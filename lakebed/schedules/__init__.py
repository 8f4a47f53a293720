"""Finds which tables have something to do, and marks them when it was done."""
