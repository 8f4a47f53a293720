"""Makes the resources that the templates ask for: one maker for each type."""
