"""Parts of definitions of feeds that have a form of their own."""
