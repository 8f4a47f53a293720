"""Feeds: what a source gives becomes rows of tables, each record once."""
