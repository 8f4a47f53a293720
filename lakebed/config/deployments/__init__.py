"""What an instance is deployed with, and what its deployment made."""
