"""Tasks that run compaction jobs are started while jobs wait."""
