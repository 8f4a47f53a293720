"""How pipelines of one process read a source."""
