"""Stacks that an instance may do without, and whose parts no other stack needs."""
