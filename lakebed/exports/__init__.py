"""A table, or some of its rows, as files of Parquet with a manifest; and a table from these."""
