"""Records that name their schema: what stands in front of them, and schemas by which they are read."""
