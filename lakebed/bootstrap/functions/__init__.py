"""Assembles what deployed functions need: a module for each function or group of functions."""
