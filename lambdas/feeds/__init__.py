"""Feeds without tasks: a function takes what trickles."""
