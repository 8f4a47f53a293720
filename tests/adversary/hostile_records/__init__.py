"""Decoders under hostile bytes, compared with small parsers of our own for each format."""
