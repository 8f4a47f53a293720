"""Commits on their way to the committer: what a message of them says, and how they are sent.

Byte 0 of a message: its format. The rest is msgpack: the table, who asked for each commit, and
the transactions as the bytes of a log entry, with its format, compression and checksum; or the path
of an object that holds such a message, when it is too large for a queue.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import msgspec

from lakebed.errors import (
    CorruptError,
    InvalidError,
    NewerFormatError,
    ObjectExistsError,
    ObjectMissingError,
)
from lakebed.model.names import JobId, Micros, TableId, TransactionNumber
from lakebed.model.paths import commits_path
from lakebed.ports.job_queue import BODY_BYTES_MAX, JobQueue, Message
from lakebed.ports.job_tracker import JobKind
from lakebed.ports.object_store import ObjectStore
from lakebed.statestore.log_entries.codec import Entry, decode_entry, encode_entry
from lakebed.statestore.log_entries.transactions import Transaction, new_files_begin_at

COMMIT_QUEUE = "commits"
MESSAGE_FORMAT = 1
COMMITS_PER_MESSAGE_MAX = 1_000
_NOT_YET = Micros(0)
"""The time of an entry is that of its append, which is still to come."""


class CommitRequester(msgspec.Struct, frozen=True, array_like=True):
    """The run of a job that wants to hear of its commit.

    rows, filtered, seconds: what it wrote and left out, how long it took.
    """

    kind: JobKind
    job: JobId
    run: str = ""
    rows: int = 0
    seconds: float = 0.0
    filtered: int = 0


class QueuedCommit(msgspec.Struct, frozen=True):
    """A commit, and who asked for it."""

    transaction: Transaction
    requester: CommitRequester


class CommitsMessage(msgspec.Struct, frozen=True, array_like=True):
    """Commits of one table.

    path: of the object that holds them instead; "": they are here.
    """

    table: TableId
    requesters: tuple[CommitRequester, ...] = ()
    entry: bytes = b""
    path: str = ""

    def commits(self) -> list[QueuedCommit]:
        """Return the commits.

        Raises:
            NewerFormatError: a newer Lakebed sent them.
            CorruptError, InvalidError: they are not what `SendCommits` sends.
        """
        transactions = decode_entry(self.entry, 0).transactions
        if len(transactions) != len(self.requesters):
            raise CorruptError("commits and requesters differ in number", table=self.table)
        if not all(map(new_files_begin_at, transactions)):
            raise InvalidError(
                "new files do not carry the base of their commit",
                table=self.table,
                hint="send the commits by `SendCommits`",
            )
        return [QueuedCommit(*of) for of in zip(transactions, self.requesters, strict=True)]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(CommitsMessage).decode


def encode_commits(message: CommitsMessage) -> bytes:
    """Return the bytes of a message."""
    return bytes((MESSAGE_FORMAT,)) + _encode(message)


def decode_commits(body: bytes) -> CommitsMessage:
    """Return the message.

    Raises:
        NewerFormatError: a newer Lakebed sent it. InvalidError: it is not a message of commits.
    """
    if body and body[0] > MESSAGE_FORMAT:
        hint = "upgrade this installation of lakebed"
        raise NewerFormatError("a newer message of commits", format=body[0], hint=hint)
    try:
        return _decode(body[1:])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidError(
            "the message is not one of commits",
            reason=error,
            hint="send the commits by `SendCommits`",
        ) from None


def read_commits(objects: ObjectStore, message: CommitsMessage) -> CommitsMessage:
    """Return the message that holds the commits: itself, or what its object holds.

    Raises:
        ObjectMissingError: they were committed or swept. Errors of `decode_commits`.
    """
    if not message.path:
        return message
    size = objects.size_of(message.path)
    if size is None:
        raise ObjectMissingError(message.path)
    (body,) = objects.read(message.path, [(0, size)])
    return decode_commits(body)


class SendCommits:
    """Sends commits to the committer, packed: as many of a table in one message as fit.

    They are done some time later, or never: a message is a hint. What became of each is told to the
    job's tracker, and the state knows each by its id. body_bytes_max: larger messages go into an
    object.
    """

    def __init__(
        self,
        *,
        queue: JobQueue,
        objects: ObjectStore,
        rng: random.Random,
        body_bytes_max: int = BODY_BYTES_MAX,
    ) -> None:
        self._queue = queue
        self._objects = objects
        self._rng = rng
        self._body_bytes_max = body_bytes_max

    def run(self, table: TableId, commits: Sequence[QueuedCommit]) -> None:
        """Send them, in any order.

        Raises:
            UnavailableError, UnknownOutcomeError: some may be on their way: send all again, under
                the same ids.
        """
        packed = (self._packed(table, some) for some in self._grouped(commits))
        self._queue.send([Message(body, message_group=table) for body in packed])

    def _grouped(self, commits: Sequence[QueuedCommit]) -> Iterator[list[QueuedCommit]]:
        """Yield commits that fit into one message even if compression saves nothing."""
        some: list[QueuedCommit] = []
        size = 0
        for commit in commits:
            own = len(_encode(commit))
            if some and (size + own > self._body_bytes_max or len(some) >= COMMITS_PER_MESSAGE_MAX):
                yield some
                some, size = [], 0
            some.append(commit)
            size += own
        if some:
            yield some

    def _packed(self, table: TableId, commits: Sequence[QueuedCommit]) -> bytes:
        transactions = tuple(commit.transaction for commit in commits)
        entry = encode_entry(Entry(_NOT_YET, transactions))
        body = encode_commits(CommitsMessage(table, tuple(c.requester for c in commits), entry))
        if len(body) <= self._body_bytes_max:
            return body
        path = self._put(table, max(t.base for t in transactions), body)
        return encode_commits(CommitsMessage(table, path=path))

    def _put(self, table: TableId, base: TransactionNumber, body: bytes) -> str:
        path = commits_path(table, base, f"{self._rng.getrandbits(128):032x}")
        writer = self._objects.create(path)
        try:
            writer.write(body)
            writer.finish()
        except ObjectExistsError:
            pass  # an earlier try of this very put: the name is used once
        finally:
            writer.abort()
        return path
