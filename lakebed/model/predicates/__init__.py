"""Predicates on the fields of a row: the closed language, its text, and what bounds rule out."""
