"""Names and numbers that identify things, and the names of files.

A file's name is 16 bytes: base (5), job (4), run (4), sequence (3). The base is the number of the
log entry that the writer had read before its first PUT (protocol H11), so that names sort by it and
a sweeper may see by name alone what is too old to be committed. Job and run make the name unique:
it is used once (H19). The first bit of the sequence says that the file was written for several
leaves.
"""

from __future__ import annotations

import hashlib
import re
from typing import NewType

from lakebed.errors import InvalidError

TableId = NewType("TableId", str)
TableName = NewType("TableName", str)
PartitionId = NewType("PartitionId", int)
FileName = NewType("FileName", bytes)
JobId = NewType("JobId", str)
ConnectionId = NewType("ConnectionId", str)
"""Id of a connection, which leads a feed into a table. Never used again for another one."""
CommitId = NewType("CommitId", str)
RequestDigest = NewType("RequestDigest", bytes)
TransactionNumber = NewType("TransactionNumber", int)
Generation = NewType("Generation", int)
EntryChecksum = NewType("EntryChecksum", bytes)
"""8 bytes that stand for the body of a log entry."""

Micros = NewType("Micros", int)
"""Microseconds since 1970-01-01T00:00Z."""

CREATION = TransactionNumber(1)
"""Number of a log's first entry, which creates its table. Only its creator commits before it has a
name."""

MICROS_PER_SECOND = 1_000_000

BASE_BYTES, JOB_BYTES, RUN_BYTES, SEQUENCE_BYTES = 5, 4, 4, 3
FILE_NAME_BYTES = BASE_BYTES + JOB_BYTES + RUN_BYTES + SEQUENCE_BYTES
SHARED_BIT = 1 << (8 * SEQUENCE_BYTES - 1)
FILES_PER_RUN_MAX = SHARED_BIT

JOB_ID_BYTES_MAX = 200
ITEM_BYTES = 16
"""Bytes of the name of what comes from a source without order: a message, an object, a segment."""
TABLE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_TABLE_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


def table_name(name: object) -> TableName:
    """Return `name` as a table name.

    Raises:
        InvalidError: it is not of the form that is allowed.
    """
    if not isinstance(name, str) or not TABLE_NAME.fullmatch(name):
        raise InvalidError(
            "not a table name",
            name=repr(name),
            hint="use 1 to 63 of a-z, 0-9, '_' and '-', beginning with a letter",
        )
    return TableName(name)


def table_id(id_: str) -> TableId:
    """Return `id_` as the id of a table, fit for names of files, keys and paths.

    Raises:
        InvalidError: it is not of the form that is allowed.
    """
    if not _TABLE_ID.fullmatch(id_):
        hint = "use 1 to 128 of A-Z a-z 0-9 _ -"
        raise InvalidError("not a table id", table=repr(id_), hint=hint)
    return TableId(id_)


def job_id(id_: object) -> JobId:
    """Return a user's name for a request as a job id.

    Raises:
        InvalidError: it is empty, longer than JOB_ID_BYTES_MAX bytes, or not text.
    """
    valid = isinstance(id_, str) and id_.isprintable() and "\ufffd" not in id_
    if not valid or not 0 < len(str(id_).encode("utf-8", "replace")) <= JOB_ID_BYTES_MAX:
        hint = f"use 1 to {JOB_ID_BYTES_MAX} bytes of printable text, for instance with the day"
        raise InvalidError("not a job id", job=ascii(id_)[:80], hint=hint)
    return JobId(str(id_))


def file_name(
    *, base: TransactionNumber, job: JobId, run: int, sequence: int, shared: bool = False
) -> FileName:
    """Return the name of the `sequence`-th file that a run of `job` writes.

    run: 32 random bits.
    shared: whether the file is written for several leaves.
    """
    if not 0 <= sequence < FILES_PER_RUN_MAX:
        raise AssertionError(f"a run writes under 2^23 files, got {sequence}")
    sequence |= SHARED_BIT if shared else 0
    return FileName(
        base.to_bytes(BASE_BYTES, "big")
        + hashlib.blake2b(job.encode(), digest_size=JOB_BYTES).digest()
        + run.to_bytes(RUN_BYTES, "big")
        + sequence.to_bytes(SEQUENCE_BYTES, "big")
    )


def is_shared(name: FileName) -> bool:
    """Return whether the file was written for several leaves. Files of ingests before this was
    recorded say no."""
    return bool(int.from_bytes(name[-SEQUENCE_BYTES:], "big") & SHARED_BIT)


def run_name(run: int) -> str:
    """Return a run as people and reports name it, and as it stands in the names of its files."""
    return run.to_bytes(RUN_BYTES, "big").hex()


def base_of(name: FileName) -> TransactionNumber:
    """Return the log number that the writer of the file started from."""
    return TransactionNumber(int.from_bytes(name[:BASE_BYTES], "big"))


def entry_checksum(body: bytes) -> EntryChecksum:
    """Return what a state remembers of the last entry that it has applied."""
    return EntryChecksum(hashlib.blake2b(body, digest_size=8).digest())


def digest_of(*parts: bytes) -> RequestDigest:
    """Return 16 bytes that stand for `parts`, each with its length, so that no two lists meet."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return RequestDigest(digest.digest())
