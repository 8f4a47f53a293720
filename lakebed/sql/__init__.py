"""Questions in SQL about the tables of a lake, answered by DuckDB."""
