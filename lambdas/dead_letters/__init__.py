"""What was given up frees what it held."""
