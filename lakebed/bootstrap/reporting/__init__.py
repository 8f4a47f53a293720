"""Reports of a lake."""
