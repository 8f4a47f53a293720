"""What operators ask of feeds, and do to them."""
