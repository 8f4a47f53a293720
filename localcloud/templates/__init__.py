"""Reads what was synthesized: templates, assets and images, and what they want run."""
