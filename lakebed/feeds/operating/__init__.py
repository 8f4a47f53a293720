"""Answers what operators ask of feeds, and does what they want done to them."""
