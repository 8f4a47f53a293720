"""The image of compaction tasks."""
