"""Feeds, put together from the services of a lake."""
