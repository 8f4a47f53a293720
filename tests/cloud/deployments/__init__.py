"""Instances that are deployed over one another."""
