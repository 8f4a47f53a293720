"""Rows of many files in any order: row groups that are decoded beside each other."""
