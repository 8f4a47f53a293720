"""A range to leaves, to files, to one sorted stream."""
