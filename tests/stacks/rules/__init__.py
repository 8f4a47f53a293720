"""Rules that templates are held to."""
