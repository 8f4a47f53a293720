"""Benchmarks that read or write all rows of a table, and what they need."""
