"""Lets people and programs in from outside, and tells them of an instance."""
