"""Functions that make batches of submitted files."""
