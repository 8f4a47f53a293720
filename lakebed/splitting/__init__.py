"""Find a leaf that is too big, choose where to split it."""
