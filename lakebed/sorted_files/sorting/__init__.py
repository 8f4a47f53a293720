"""Rows in any order, or in many sorted streams, become one stream in the order of keys."""
