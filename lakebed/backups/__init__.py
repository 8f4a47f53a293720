"""Copy a lake to another place while others write to it, and back."""
