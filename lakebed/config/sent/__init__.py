"""What senders write: parts of users' messages, and what S3 says of files."""
