"""What containers run: one folder for each image."""
