"""Frees what was held by jobs that were given up."""
