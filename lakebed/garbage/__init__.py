"""Delete files that nothing refers to any more; sweep what never got a reference."""
