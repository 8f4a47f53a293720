"""Checks a release before it is deployed."""
