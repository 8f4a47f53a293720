"""Records that name their schema: what stands in front of them, and how schemas are read by."""
