"""Sorted rows become one Parquet file."""
