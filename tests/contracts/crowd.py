"""Processes that commit to one table at once, each with a head of its own."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import NamedTuple, TypeVar
from unittest.mock import patch

from lakebed.backends.aws import transaction_logs
from lakebed.backends.aws.transaction_logs import DynamoTransactionLogs
from lakebed.backends.system import SystemClock, system_random
from lakebed.config.dynamo_tables import LOG_TABLE
from lakebed.errors import ConflictError, UnavailableError, UnknownOutcomeError
from lakebed.model.files import FileReference, KeyBounds, StoredFile
from lakebed.model.names import CommitId, JobId, TableId, TransactionNumber, digest_of, file_name
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.table_changes import create_table
from lakebed.statestore.log_entries.transactions import Change, Transaction
from lakebed.statestore.table_state.layout import open_memory
from lakebed.statestore.table_state.placing import own_key_range
from lakebed.statestore.table_state.state import TableState
from tests.dsl.table_story import SCHEMA
from tests.servers.s3 import S3Server

TABLE = TableId("t1")
ANSWER_SECONDS_MAX = 300
SMALL_BODY_BYTES = 500
"""Larger bodies of entries lie beside the log here: those that add so many files."""
FILES_OF_LARGE_BODY = 60

T = TypeVar("T")
spawn = multiprocessing.get_context("spawn")


class Place(NamedTuple):
    """Where a table is: its log, and beside it what is too large for the log."""

    log: S3Server
    name: str
    objects: S3Server
    prefix: str


def new_place(log: S3Server, objects: S3Server) -> Place:
    """Make a table, with one leaf and nothing in it."""
    place = Place(log, log.new_table(LOG_TABLE), objects, objects.new_prefix())
    with head_at(place) as head:
        assert head.commit(transaction(head, "creation", create_table(SCHEMA, {}, ()))) == 1
    return place


@contextmanager
def head_at(place: Place) -> Iterator[TableHead]:
    """Give a new process's head."""
    with closing(place.log.clients()) as clients:
        rng = system_random()
        objects = place.objects.store(place.prefix)
        logs = DynamoTransactionLogs(clients, place.name, objects=objects, rng=rng)
        state = TableState(open_memory())
        small = patch.object(transaction_logs, "BODY_BYTES_MAX", SMALL_BODY_BYTES)
        with closing(state.connection), small:
            yield TableHead(logs.open(TABLE), state, clock=SystemClock(), rng=rng)


def transaction(head: TableHead, id_: str, change: Change) -> Transaction:
    """Return a commit that is planned on what the head knows."""
    known = head.state.head()
    digest = digest_of(id_.encode())
    return Transaction(CommitId(id_), digest, known.number, known.generation, (change,))


def commit_some(place: Place, worker: int, commits: int) -> dict[str, int]:
    """Add files, in each third commit many. Returns what was acknowledged: numbers by id."""
    acknowledged = {}
    with head_at(place) as head:
        _until_answered(head.follow)
        for n in range(commits):
            id_ = f"{worker}-{n}"
            files = FILES_OF_LARGE_BODY if n % 3 == 0 else 1
            adding = transaction(head, id_, AddFiles(_new_files(head.state, id_, files)))
            acknowledged[id_] = _until_answered(partial(head.commit, adding))
    return acknowledged


def check_all_there(place: Place, acknowledged: dict[str, int]) -> None:
    """The log has all that was acknowledged and nothing else, each once, without a gap."""
    with head_at(place) as head:
        landed = [
            (number, decode_entry(body, number).transactions)
            for number, body in head._log.read_after(TransactionNumber(0))
        ]
        assert [number for number, _ in landed] == list(range(1, len(acknowledged) + 2))
        ids = {one.id: number for number, (one,) in landed}
        assert ids == {"creation": 1} | acknowledged
        assert list(place.objects.store(place.prefix).list("logs/")), "no body was large"
        head.follow()
        files = sum(len(one.changes[0].files) for _, (one,) in landed[1:])
        assert sum(1 for _ in head.state.all_references()) == files


def wait_for_entries(place: Place, entries: int) -> None:
    """Return when the log has so many."""
    end = time.monotonic() + ANSWER_SECONDS_MAX
    with head_at(place) as head:
        while _number(head) < entries:
            assert time.monotonic() < end, f"the log never had {entries} entries"
            time.sleep(0.05)


def _number(head: TableHead) -> TransactionNumber:
    _until_answered(head.follow)
    return head.state.head().number


def _new_files(state: TableState, id_: str, files: int) -> tuple[FileReference, ...]:
    head = state.head()
    reach = KeyBounds(b"", None).inside(own_key_range(state, head.root))
    names = [
        file_name(base=head.number, job=JobId(f"{id_}/{n}"), run=0, sequence=0)
        for n in range(files)
    ]
    rng = random.Random(id_)  # checksums keep a body from being packed small
    return tuple(
        FileReference(StoredFile(name, 1_000, 500, rng.getrandbits(64), 1), head.root, 1, reach)
        for name in names
    )


def _until_answered(call: Callable[[], T]) -> T:
    """Call until the stores answer: what has no answer is done again under the same id, as is what
    others won from for a minute."""
    end = time.monotonic() + ANSWER_SECONDS_MAX
    while True:
        try:
            return call()
        except (ConflictError, UnavailableError, UnknownOutcomeError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
