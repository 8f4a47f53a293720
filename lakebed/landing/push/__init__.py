"""What is pushed into a feed: kept as segments before its sender hears success, then landed."""
