"""Files that nothing refers to any more are deleted."""
