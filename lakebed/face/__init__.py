"""The public face in pieces: what a lake and a table give, one module for each kind of use."""
