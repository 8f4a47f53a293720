"""Rows in by the billion: plan the work, have a cluster sort and merge, commit it all at once."""
