"""Assembles what deployed tasks and Spark's driver need: programs that run one kind of job."""
