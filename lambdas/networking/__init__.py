"""A network of somebody's is looked at before tasks are to run in it."""
