"""What others do with the same files: each is measured in a process of its own."""
