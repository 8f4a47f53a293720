"""Computes what an instance on AWS costs: amounts of what Amazon charges for, times a file of
prices."""
