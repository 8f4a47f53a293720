"""The image of ingest tasks."""
