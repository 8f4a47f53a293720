"""Looks at what was deployed, by requests to AWS."""
