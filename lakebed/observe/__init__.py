"""Every log event, by name."""
