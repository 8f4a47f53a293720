"""Commands that put rows into tables, and give them out."""
