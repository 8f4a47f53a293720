"""Servers that answer slowly, as S3, DynamoDB and SQS do, and tables that are read from them."""
