"""Settings: names, bounds, defaults, and what moves when they are turned up."""
