"""fsck: log, state, snapshots and objects of a lake, held against each other. Changes nothing.

The log is replayed and believed; the cache's state must be the same, and is believed only where
the log cannot be read. Commits of other processes do no harm: a finding on objects is reported only
if it still holds in the newest version.

What a broken disk or a missing permission refuses of one table is a finding, and the others are
checked. Only the names of tables must be there to be asked for: without them, as when credentials
are refused for the whole store, nothing can be checked, and that is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from lakebed.errors import (
    CacheDamagedError,
    ConflictError,
    CorruptError,
    LogRolledBackError,
    LogTruncatedError,
    NewerFormatError,
)
from lakebed.inspection.check_kept import keepers
from lakebed.inspection.check_objects import CheckObjects, Progress, known_of
from lakebed.inspection.check_state import check_state
from lakebed.inspection.findings import Finding, finding
from lakebed.inspection.replay import Replay, ReplayLog
from lakebed.inspection.unreadable import BROKEN, UNREADABLE, problem_of
from lakebed.model.names import (
    MICROS_PER_SECOND,
    EntryChecksum,
    FileName,
    TableId,
    TableName,
    TransactionNumber,
)
from lakebed.model.paths import file_of, table_of, table_of_entry, table_of_lost, table_prefix
from lakebed.ports.clock import Clock
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.sorted_files import SortedFiles
from lakebed.ports.table_registry import NAMES_GONE, TableEntry, TableRegistry
from lakebed.ports.transaction_log import TransactionLog, TransactionLogs
from lakebed.statestore.head import TableHead
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.last_entry import known
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.table_state.time_records import LEAP_MAX, created_at
from lakebed.statestore.warm_heads import WarmHeads

NAMELESS = TableName("(nameless)")


class FsckReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of fsck.

    files: that were checked.
    deep: whether their bytes and rows were read.
    """

    tables: int
    files: int
    findings: tuple[Finding, ...]
    deep: bool = False

    @property
    def is_damaged(self) -> bool:
        """Return whether anything that was committed is wrong, gone, or cannot be read."""
        return any(f.severity == "damage" for f in self.findings)

    @property
    def is_newer(self) -> bool:
        """Return whether a newer Lakebed wrote to a table, which this one cannot judge."""
        return any(f.code == "table-newer" for f in self.findings)


class _CacheState(msgspec.Struct, frozen=True):
    """followed: whether no entry of the log that comes next contradicts itself."""

    number: TransactionNumber
    digest: bytes
    checksum: EntryChecksum | None
    followed: bool


class _Table(msgspec.Struct, frozen=True):
    findings: tuple[Finding, ...]
    files: int


def no_leftovers() -> Iterable[Finding]:
    """Return nothing: a backend without local leftovers."""
    return ()


class Fsck:
    """Inspects a lake. leftovers: what dead processes left on this machine, if the backend keeps
    such."""

    def __init__(
        self,
        *,
        registry: TableRegistry,
        logs: TransactionLogs,
        objects: ObjectStore,
        files: SortedFiles[Any],
        heads: WarmHeads,
        clock: Clock,
        leftovers: Callable[[], Iterable[Finding]] = no_leftovers,
    ) -> None:
        self._registry = registry
        self._logs = logs
        self._objects = objects
        self._files = files
        self._heads = heads
        self._clock = clock
        self._leftovers = leftovers

    def run(
        self,
        tables: Sequence[TableName] | None = None,
        *,
        deep: bool = False,
        on_progress: Progress = lambda _name, _done, _total: None,
    ) -> FsckReport:
        """Inspect some tables, or the whole lake without those in quarantine. deep: read every byte
        and every row.

        Raises:
            NewerFormatError: a newer Lakebed wrote the names of tables, or queues.
            DeniedError, UnavailableError: names of tables cannot be asked for; nothing was checked.
            StorageFullError: this machine has no room to look.
        """
        found: list[Finding] = []
        entries: Sequence[TableEntry] = ()
        is_named = True
        try:
            entries = self._registry.list()
        except CorruptError as error:
            found.append(finding("registry-damaged", problem=str(error)))
            is_named = error.message == NAMES_GONE  # then no log has one, and each can get one
        wanted = [e for e in entries if (not e.quarantined if tables is None else e.name in tables)]
        checked = [self._checked(entry, deep=deep, on_progress=on_progress) for entry in wanted]
        found += [finding for table in checked for finding in table.findings]
        if tables is None and is_named:
            aside = [entry for entry in entries if entry.quarantined]
            found += [finding("table-quarantined", table=e.name, id=e.id) for e in aside]
            self._add_of_lake(lambda: self._check_lake(entries), found)
        if tables is None:
            self._add_of_lake(self._leftovers, found)
        return FsckReport(
            tables=len(wanted),
            files=sum(t.files for t in checked),
            findings=tuple(found),
            deep=deep,
        )

    def _checked(
        self, entry: TableEntry, *, deep: bool, on_progress: Progress, is_again: bool = False
    ) -> _Table:
        """Check one table; an error that ends the check is a finding, and fsck goes on. What a
        process took away while it was read is looked for once more."""
        found: list[Finding] = []
        files = 0
        try:
            files = self._check_table(entry, found, deep=deep, on_progress=on_progress)
        except ConflictError as error:
            if not is_again:
                return self._checked(entry, deep=deep, on_progress=on_progress, is_again=True)
            found.append(finding("table-unreadable", table=entry.name, problem=problem_of(error)))
        except NewerFormatError as error:
            found.append(finding("table-newer", table=entry.name, problem=str(error)))
        except (*BROKEN, *UNREADABLE) as error:
            found.append(finding("table-unreadable", table=entry.name, problem=problem_of(error)))
        return _Table(tuple(found), files)

    def _check_table(
        self, entry: TableEntry, found: list[Finding], *, deep: bool, on_progress: Progress
    ) -> int:
        """Add what is found of a table. Returns how many files were checked."""
        log = self._logs.open(entry.id)
        cache = self._look_at_cache(entry, found)
        snapshots = self._heads.snapshots(entry.id)
        replay = ReplayLog(entry.name, log, snapshots, deep=deep).run(
            cache.number if cache and cache.followed else None
        )
        found += self._still_kept(entry, replay.findings)
        state = replay.state
        if state is not None and replay.number == 0 and cache is None:
            if not log.newest():
                found.append(finding("name-without-log", table=entry.name, id=entry.id))
            return 0
        if cache is not None and state is not None and replay.whole:
            found += self._compare(entry, cache, state)
        if state is not None and replay.whole:
            return self._check_inside(entry, state, found, deep=deep, on_progress=on_progress)
        if cache is None:
            return 0
        with self._heads(entry.id).holding() as believed, believed.reading():
            return self._check_inside(entry, believed, found, deep=deep, on_progress=on_progress)

    def _look_at_cache(self, entry: TableEntry, found: list[Finding]) -> _CacheState | None:
        """Return what the cache says, brought up to the log where that can be read; None: nothing.

        It is proven before its head opens it: opening it would mend it, and hide the damage.
        """
        try:
            problem = self._heads.problem_of_cache(entry.id)
            if problem:
                found.append(finding("cache-damaged", table=entry.name, problem=problem))
                return None
            head = self._heads(entry.id)
            followed = _is_followed(head)
            with head.holding() as state, state.reading():
                number, checksum = known(state)
                if number:  # else nothing could be read into it
                    return _CacheState(number, state.digest(), checksum, followed)
        except (*BROKEN, CacheDamagedError) as error:
            found.append(finding("cache-damaged", table=entry.name, problem=str(error)))
        except UNREADABLE as error:
            found.append(finding("cache-unreadable", table=entry.name, problem=problem_of(error)))
        return None

    def _compare(
        self, entry: TableEntry, cache: _CacheState, state: TableState
    ) -> Iterator[Finding]:
        number, checksum = known(state)
        if number != cache.number:
            return
        if None not in {checksum, cache.checksum} and checksum != cache.checksum:
            yield finding("log-differs", table=entry.name, number=number)
        elif state.digest() != cache.digest:
            yield finding("cache-differs", table=entry.name, number=cache.number)
            with (
                suppress(*BROKEN),  # a number may be a text there
                self._heads(entry.id).holding() as local,
                local.reading(),
            ):
                yield from check_state(local, entry.name, where="cache")

    def _check_inside(
        self,
        entry: TableEntry,
        state: TableState,
        found: list[Finding],
        *,
        deep: bool,
        on_progress: Progress,
    ) -> int:
        if state.head().dropped:
            found += self._left_of_dropped(entry.id)
            return 0
        ahead = state.head().at - self._clock.now()
        if ahead > LEAP_MAX:
            days = ahead // (86_400 * MICROS_PER_SECOND)
            found.append(finding("log-time-ahead", table=entry.name, days=days))
        inside = list(check_state(state, entry.name))
        found += inside
        if any(f.code in {"tree-broken", "reference-not-on-leaf"} for f in inside):
            return 0
        believed = known_of(state)
        check = CheckObjects(
            objects=self._objects,
            files=self._files,
            table=entry.id,
            name=entry.name,
            deep=deep,
            on_progress=on_progress,
        )
        found += self._still_true(entry, check.run(believed))
        return len(believed.references)

    def _still_true(self, entry: TableEntry, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Leave out what later commits explain: a file collected or committed meanwhile."""
        for one in findings:
            file = file_of(str(one.facts.get("path", "")))
            if one.code == "file-missing" and not self._is_referenced(entry, file):
                continue
            if one.code.startswith("object-") and self._is_known(entry, file):
                continue
            yield one

    def _still_kept(self, entry: TableEntry, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Leave out versions that nothing keeps any more: their snapshots may be dropped."""
        for one in findings:
            if one.code != "version-lost" or self._is_kept(entry, one):
                yield one

    def _is_kept(self, entry: TableEntry, lost: Finding) -> bool:
        head = self._newest(entry)
        if head is None:
            return True
        with head.holding() as state, state.reading():
            return lost.facts["keeper"] in {keeper.name for keeper in keepers(state)}

    def _is_referenced(self, entry: TableEntry, file: FileName | None) -> bool:
        head = self._newest(entry)
        if head is None or file is None:
            return True
        with head.holding() as state, state.reading():
            return bool(state.references_of(file))

    def _is_known(self, entry: TableEntry, file: FileName | None) -> bool:
        head = self._newest(entry)
        if head is None or file is None:
            return False
        with head.holding() as state, state.reading():
            return state.knows_file(file)

    def _newest(self, entry: TableEntry) -> TableHead | None:
        try:
            head = self._heads(entry.id)
            head.follow()
        except (*BROKEN, *UNREADABLE):
            return None
        return head

    def _add_of_lake(self, look: Callable[[], Iterable[Finding]], found: list[Finding]) -> None:
        """Add what lies beside the tables. What cannot be listed to its end is a finding."""
        try:
            found.extend(look())
        except (*BROKEN, *UNREADABLE) as error:
            one = finding("lake-unreadable", problem=problem_of(error))
            if one not in found:
                found.append(one)

    def _check_lake(self, entries: Sequence[TableEntry]) -> Iterator[Finding]:
        named = {entry.id for entry in entries}
        logs = set(self._logs.tables())
        for id_ in sorted(logs - named):
            try:
                yield from self._check_nameless(id_)
            except NewerFormatError as error:
                yield finding("table-newer", id=id_, problem=str(error))
        for path in self._objects.list(""):
            owner = table_of(path) or table_of_entry(path) or table_of_lost(path)
            if owner is None or owner not in named | logs:
                yield finding("object-stray", path=path)

    def _check_nameless(self, id_: TableId) -> Iterator[Finding]:
        try:
            yield from self._look_at_nameless(id_)
        except (*BROKEN, *UNREADABLE) as error:
            yield finding("table-unreadable", id=id_, problem=problem_of(error))

    def _look_at_nameless(self, id_: TableId) -> Iterator[Finding]:
        replay = _replayed(self._logs.open(id_), self._heads.snapshots(id_))
        if replay is None or (replay.state is not None and replay.state.head().dropped):
            yield from self._left_of_dropped(id_)
        elif replay.number:
            is_new = replay.state is not None and created_at(replay.state) is not None
            code = "log-without-name" if is_new else "name-lost"
            yield finding(code, id=id_, number=replay.number)

    def _left_of_dropped(self, id_: TableId) -> Iterator[Finding]:
        left = sum(1 for _ in self._objects.list(table_prefix(id_)))
        if left:
            yield finding("dropped-table-objects", id=id_, objects=left)


def _is_followed(head: TableHead) -> bool:
    """Follow the log; False: an entry cannot be read, and the replay, which meets it, reports
    that."""
    try:
        with suppress(LogRolledBackError, *UNREADABLE):
            head.follow()
    except BROKEN:
        return False
    return True


def _replayed(log: TransactionLog, snapshots: Snapshots) -> Replay | None:
    """Return what a log without a name leads to; None: only a tombstone is left of it."""
    try:
        next(iter(log.read_after(TransactionNumber(0))), None)
    except CorruptError:
        pass  # the replay reports it
    except LogTruncatedError:
        if not snapshots.newest_first():
            return None
    return ReplayLog(NAMELESS, log, snapshots).run(None)
