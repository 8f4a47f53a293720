"""Drivers of Spark jobs, and beside each a module of DataFrames in, DataFrames out."""
