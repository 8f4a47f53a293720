"""Finds the leaves and files of a key range, and reads them as one sorted stream."""
