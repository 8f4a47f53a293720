"""The queues of an instance in SQS, by the kind of their messages. The stacks make them so."""

from __future__ import annotations

import msgspec


class JobQueueShape(msgspec.Struct, frozen=True, kw_only=True):
    """A FIFO queue and its dead letters. kind: of its messages, and part of its physical name.

    receives_max: a message received more often is a dead letter. age_seconds_max: of the oldest
    message, before an operator is called.
    """

    kind: str
    age_seconds_max: int
    receives_max: int = 5


COMPACTION_JOBS = JobQueueShape(kind="compaction", age_seconds_max=3_600)
"""A job is waiting too long: there are too few tasks, or none comes up."""

COMMITS = JobQueueShape(kind="commits", age_seconds_max=300)
"""What was ingested or merged is not visible yet, and its sender waits for an answer."""

JOB_QUEUES = (COMPACTION_JOBS, COMMITS)
