"""Benchmarks that read or write all rows of a table, or look at all tables of a lake."""
