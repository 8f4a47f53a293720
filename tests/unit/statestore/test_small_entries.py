"""Most roles may put no body of a log entry beside the log: what they commit never needs one."""

import random

import pytest

from lakebed.backends.aws.transaction_logs import BODY_BYTES_MAX
from lakebed.compaction.create_jobs import NAMES_PER_ENTRY
from lakebed.compaction.plan import FAN_IN_MAX
from lakebed.garbage.collect import FILES_AT_ONCE
from lakebed.model.names import (
    FILE_NAME_BYTES,
    JOB_ID_BYTES_MAX,
    CommitId,
    FileName,
    Generation,
    JobId,
    Micros,
    PartitionId,
    TransactionNumber,
    digest_of,
)
from lakebed.statestore.log_entries.codec import Entry, encode_entry
from lakebed.statestore.log_entries.file_changes import (
    ClaimFiles,
    ReleaseClaim,
    RemoveGarbage,
    ReplaceFiles,
)
from lakebed.statestore.log_entries.transactions import Change, Transaction

CHANCE = random.Random(7)


def entry_bytes(changes: list[Change]) -> int:
    """Return the size of an entry of as many transactions, whose ids do not shrink."""
    transactions = [
        Transaction(
            CommitId(f"{CHANCE.getrandbits(128):032x}"),
            digest_of(CHANCE.randbytes(16)),
            TransactionNumber(CHANCE.getrandbits(40)),
            Generation(CHANCE.getrandbits(31)),
            (change,),
        )
        for change in changes
    ]
    return len(encode_entry(Entry(Micros(1 << 62), tuple(transactions))))


def names(count: int) -> tuple[FileName, ...]:
    """Return names in which nothing repeats."""
    return tuple(FileName(CHANCE.randbytes(FILE_NAME_BYTES)) for _ in range(count))


@pytest.mark.parametrize("files", [1, 2, 3, 12, 100, FAN_IN_MAX])
def test_claims_of_one_entry(files: int) -> None:
    claims = max(1, NAMES_PER_ENTRY // (files + 3))
    changes: list[Change] = [
        ClaimFiles(
            JobId(f"{CHANCE.getrandbits(128):032x}"),
            PartitionId(CHANCE.getrandbits(40)),
            names(files),
        )
        for _ in range(claims)
    ]
    assert entry_bytes(changes) <= BODY_BYTES_MAX


def test_ends_of_jobs_and_of_garbage() -> None:
    job = JobId("j" * JOB_ID_BYTES_MAX)
    for change in (
        ReplaceFiles(job, PartitionId(1), names(FAN_IN_MAX), None),
        ReleaseClaim(job),
        RemoveGarbage(names(FILES_AT_ONCE)),
    ):
        assert entry_bytes([change]) <= BODY_BYTES_MAX * 2 // 3
