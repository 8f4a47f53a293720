"""Instances as their files say: with some stacks, and with tags."""
