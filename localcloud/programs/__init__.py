"""Processes of a local cloud, run by their paths: they import nothing of ours."""
