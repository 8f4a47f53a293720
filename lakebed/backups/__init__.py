"""Copy a lake to another place while processes write to it, and back."""
