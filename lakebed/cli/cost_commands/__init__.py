"""Commands on what work costs."""
