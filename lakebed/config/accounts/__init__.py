"""What an account has, and what an instance needs of it."""
