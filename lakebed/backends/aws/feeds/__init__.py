"""Stores that feeds of an instance need beside its tables."""
