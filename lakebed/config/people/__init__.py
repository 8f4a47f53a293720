"""Rights of people in an instance: who has which role, and what IAM must allow them."""
