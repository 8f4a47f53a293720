"""Doors to what the doctor looks at, beside lakes."""
