"""Leaves that are too large become several."""
