"""States are written down, and logs lose their old bodies."""
