"""The loop of a worker: take, run, report, stop."""
