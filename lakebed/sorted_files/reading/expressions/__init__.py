"""Reads expressions of Arrow: their trees, as predicates, and what bounds rule out."""
