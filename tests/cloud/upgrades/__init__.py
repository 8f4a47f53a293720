"""An instance between two releases."""
