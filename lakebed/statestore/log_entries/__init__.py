"""Defines what a log entry holds: transactions of changes, and their bytes."""
