"""Commands about what is defined of feeds."""
