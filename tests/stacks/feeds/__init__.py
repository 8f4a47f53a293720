"""Of the stack of feeds: parts that only some instances have."""
