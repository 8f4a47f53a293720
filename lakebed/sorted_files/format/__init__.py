"""Formats that the other rooms share: keys as bytes, schemas as Arrow, notes and samples of
files."""
