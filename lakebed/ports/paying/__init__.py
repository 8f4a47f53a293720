"""Records what work used, and what was billed for it."""
