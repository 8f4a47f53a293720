"""Doors to the outside. Each has a contract suite that every backend passes."""
