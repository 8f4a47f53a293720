"""Tables that never got a name are buried."""
