"""Landing tables: the records of a feed as they came."""
