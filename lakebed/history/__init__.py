"""What became of jobs, kept as a table of the lake itself."""
