"""Ends of jobs as events."""
