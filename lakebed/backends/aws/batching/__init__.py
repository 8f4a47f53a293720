"""Files that wait to be ingested, and batches of them, in DynamoDB."""
