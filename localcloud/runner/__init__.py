"""Runs functions, tasks and Spark, when queues, schedules and callers want it."""
