"""Jobs are sent to an instance, whose tasks, or Spark, do them: a message names files, not rows."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import msgspec

from lakebed.errors import InvalidError, LakebedError, did_you_mean
from lakebed.model.addresses import NAME_LENGTH_MAX, NAMED_FILES_MAX, check_named_file
from lakebed.model.jobs import BULK_IMPORT_QUEUE, INGEST_QUEUE
from lakebed.model.names import JobId, TableName, job_id
from lakebed.ports.file_batches import BatchTarget
from lakebed.ports.job_queue import BODY_BYTES_MAX, JobQueues, Message

QUEUES: Mapping[BatchTarget, str] = {"ingest": INGEST_QUEUE, "bulk-import": BULK_IMPORT_QUEUE}


class SentJob(msgspec.Struct, frozen=True):
    """A message as users write it (docs/reference/message-ingest.md)."""

    id: JobId
    table: TableName
    files: Sequence[str]


class SendJobs:
    """Sends jobs to the queues that users send to. rng: makes ids of jobs that were given none."""

    def __init__(self, queues: JobQueues, *, rng: random.Random) -> None:
        self._queues = queues
        self._rng = rng

    def run(
        self,
        table: TableName,
        names: Sequence[str],
        *,
        job: str | None = None,
        target: BatchTarget = "ingest",
    ) -> JobId:
        """Send a job that takes files into a table. Returns its id.

        Raises:
            InvalidError: no job takes these names, or the instance has no such queue; nothing was
                sent.
            UnavailableError, UnknownOutcomeError: it may be sent; send it again with the job in its
                facts.
        """
        check_names(names)
        if target not in QUEUES:
            hint = did_you_mean(target, QUEUES, what="target")
            raise InvalidError("no jobs of this kind are sent", target=target, hint=hint)
        id_ = job_id(job) if job is not None else JobId(f"sent-{self._rng.getrandbits(128):032x}")
        body = msgspec.json.encode(SentJob(id_, table, names))
        if len(body) > BODY_BYTES_MAX:
            hint = "name folders, or send several jobs"
            raise InvalidError("the names do not fit in one message", bytes=len(body), hint=hint)
        queue = self._queues.open(QUEUES[target])
        try:
            queue.send([Message(body, message_group=id_)])
        except LakebedError as error:
            error.facts["job"] = id_
            raise
        return id_


def check_names(names: Sequence[str]) -> None:
    """Raise InvalidError if a job for an instance cannot name these files. Whether they are there,
    who does the job finds out."""
    if not 0 < len(names) <= NAMED_FILES_MAX:
        hint = f"name 1 to {NAMED_FILES_MAX}; a name that ends with `/` means all files below"
        raise InvalidError("not a number of files for one job", files=len(names), hint=hint)
    for name in names:
        if not str(name).startswith("s3://"):
            raise not_in_s3(name)
        check_named_file(name)
        if len(name) > NAME_LENGTH_MAX:
            hint = f"at most {NAME_LENGTH_MAX} characters"
            raise InvalidError("the name of a file is too long", length=len(name), hint=hint)


def not_in_s3(name: str) -> InvalidError:
    """Return what is said of a file of this machine, which no task of an instance can read."""
    hint = "copy it to a bucket of the instance's `sources`, and name it s3://BUCKET/KEY"
    return InvalidError("an instance takes files in from S3", file=name, hint=hint)
