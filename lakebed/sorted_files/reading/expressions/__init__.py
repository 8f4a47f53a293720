"""What expressions of Arrow say: their trees, as predicates, and what bounds rule out."""
