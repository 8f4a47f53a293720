"""Works for feeds where no process needs to stay."""
