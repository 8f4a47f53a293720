"""What was deployed, as AWS tells it."""
