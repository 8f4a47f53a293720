"""Packages of users in an instance of their own."""
