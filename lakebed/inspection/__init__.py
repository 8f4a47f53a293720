"""Look, compare, mend: what a table looks like now, and whether its parts agree."""
