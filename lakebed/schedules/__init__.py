"""Finds which tables have something to do, and records when it was done."""
