"""Settings that an instance is deployed with, and resources that its deployment made."""
