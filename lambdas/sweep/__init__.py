"""Objects that never got a reference are deleted."""
