"""Releases that processes of an instance run, as they report them."""
