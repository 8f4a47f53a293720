"""Implementations of the ports. No backend imports another one, `faulty` wraps any of them."""
