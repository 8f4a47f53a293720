"""The page of figures with its pictures."""
