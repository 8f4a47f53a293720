"""What lets people and programs in from outside, and what they hear of an instance."""
