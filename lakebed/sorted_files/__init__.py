"""The file format: sort rows, write them as Parquet, read a range, merge files, sample keys."""
