"""What a log entry holds: transactions of changes, and their bytes."""
