"""How one release replaces another."""
