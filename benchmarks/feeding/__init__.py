"""Parts of the benchmark of feeds."""
