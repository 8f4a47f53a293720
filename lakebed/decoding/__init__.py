"""Bytes of records become rows of a schema, with a verdict each. It knows nothing of feeds."""
