"""Commands for what files declare."""
