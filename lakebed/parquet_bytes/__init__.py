"""Parquet by bytes: footers, page indexes and pages, without a library in between.

What it does not know is left to pyarrow. Nothing here knows a table, a key or an object's path.
"""
