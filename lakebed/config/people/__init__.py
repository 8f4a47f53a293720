"""What people may do with an instance: who has which role, and what IAM must allow them."""
