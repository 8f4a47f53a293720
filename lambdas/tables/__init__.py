"""Makes tables as files declare them."""
