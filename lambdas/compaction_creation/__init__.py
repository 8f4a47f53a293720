"""Compaction jobs are created, and sent again when nobody started them."""
