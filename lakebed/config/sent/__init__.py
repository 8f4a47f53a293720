"""Parts of what senders write: of users' messages, and of what S3 says of files."""
