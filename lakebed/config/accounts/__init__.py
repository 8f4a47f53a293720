"""Quotas of an account, and what an instance needs of them."""
