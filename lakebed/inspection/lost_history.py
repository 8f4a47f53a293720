"""Finds what a repair takes out of a log: which commits are lost, and copies of all that knew
them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from lakebed.errors import CorruptError, ObjectExistsError
from lakebed.model.names import CommitId, FileName, Micros, TransactionNumber
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.state import TableState

UNREADABLE = CommitId("(unreadable)")
"""Stands for the commits of an entry that cannot be read."""

ENTRIES, SUMMARY = "entries.jsonl", "lost.json"
_FILES = "SELECT file FROM file_references UNION SELECT file FROM garbage"
_COMMITS = (
    "SELECT id, number, (SELECT max(at) FROM entry_times t WHERE t.number <= c.number)"
    " FROM commits c"
)

NumberedBody = tuple[TransactionNumber, bytes]


class LostCommit(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """A commit that the log no longer holds.

    at: its log time, to a minute; None: not known.
    """

    number: TransactionNumber
    id: CommitId
    at: Micros | None = None


class LostHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The commits that are known beside the state from which a log goes on: they are lost.

    after: the entry of that state.
    files: that only the lost commits refer to, by the hexadecimal digits of their names.
    """

    after: TransactionNumber
    commits: tuple[LostCommit, ...]
    files: tuple[str, ...]


def lost_history(
    base: TableState, others: Sequence[TableState], behind: Iterable[NumberedBody]
) -> LostHistory:
    """Return what is lost when a log goes on from `base`.

    others: states that may know more.
    behind: entries that are not part of it.
    """
    head = base.head()
    kept = {id_ for id_, _, _ in base.connection.execute(_COMMITS)}
    lost: dict[CommitId | TransactionNumber, LostCommit] = {}
    files: set[FileName] = set()
    for state in others:
        for id_, number, at in state.connection.execute(_COMMITS):
            # below the floor the base may have forgotten an id
            if id_ not in kept and (number > head.number or number >= head.floor):
                lost[id_] = LostCommit(number=number, id=id_, at=at)
        found = (name for (name,) in state.connection.execute(_FILES))
        files.update(name for name in found if not base.knows_file(name))
    for number, body in behind:
        try:
            entry = decode_entry(body, number)
        except CorruptError:
            lost[number] = LostCommit(number=number, id=UNREADABLE)
            continue
        for transaction in entry.transactions:
            if transaction.id not in kept:
                one = LostCommit(number=number, id=transaction.id, at=entry.at)
                lost[transaction.id] = one
    return LostHistory(
        after=head.number,
        commits=tuple(sorted(lost.values(), key=lambda one: (one.number, one.id))),
        files=tuple(sorted(name.hex() for name in files)) if lost else (),
    )


class KeepLost:
    """Puts copies beside the table's objects, where nothing reads or deletes them. Safe to kill
    anywhere, and to repeat."""

    def __init__(self, objects: ObjectStore, snapshots: Snapshots, prefix: str) -> None:
        self._objects = objects
        self._snapshots = snapshots
        self._prefix = prefix

    def run(
        self,
        log: TransactionLog,
        oldest: TransactionNumber,
        states: Sequence[TableState],
        lost: LostHistory,
    ) -> None:
        """Keep every entry of a log that has a body, states as snapshots, and what is lost."""
        self._put(ENTRIES, _lines(log.read_scattered(TransactionNumber(oldest - 1))))
        for state in states:
            self._snapshots.keep(state, self._prefix)
        self._put(SUMMARY, [msgspec.json.encode(lost)])

    def _put(self, name: str, pieces: Iterable[bytes]) -> None:
        path = self._prefix + name
        if self._objects.size_of(path) is not None:
            return
        writer = self._objects.create(path)
        try:
            for piece in pieces:
                writer.write(piece)
            writer.finish()
        except ObjectExistsError:
            pass  # another process, which kept the same
        finally:
            writer.abort()


def _lines(entries: Iterable[NumberedBody]) -> Iterator[bytes]:
    """Yield each entry as a line of JSON: its number, and its body in base64."""
    for number, body in entries:
        yield msgspec.json.encode({"number": number, "body": body}) + b"\n"
