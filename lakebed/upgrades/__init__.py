"""How one release replaces another: who runs which, and when newer forms may be written."""
