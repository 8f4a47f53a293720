"""Wanted rows out of sorted files: tails, row groups, single pages."""
