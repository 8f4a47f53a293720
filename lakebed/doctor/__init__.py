"""Whether an account of AWS has room for an instance."""
