"""Which tables have something to do, and what is told when it was done."""
