"""Counts, prices and bounds the work of a lake."""
