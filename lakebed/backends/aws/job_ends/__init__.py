"""Ends of jobs on AWS: from the stream of the tracker's table to a bus of EventBridge."""
