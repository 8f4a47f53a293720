"""Users' own CSV, JSON and Parquet files: open them, fit their columns to a schema."""
