"""Creates, finds, lists, changes and drops tables."""
