"""Programs that containers run: one folder for each image."""
