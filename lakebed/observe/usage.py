"""Counts what work uses of what is paid for, where it happens, by kind of work and table.

A thread knows the work that it does by a context variable; what it counts without any counts as the
process's own. Threads of pools are handed the work of who gives them something to do (`carried`).
Each thread adds to numbers of its own, so none waits for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import wraps
from threading import Lock, get_ident
from typing import Any, Concatenate, Final, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

T = TypeVar("T")
SelfT = TypeVar("SelfT")
P = ParamSpec("P")

NO_TABLE: Final = "-"
"""Stands in place of a table's id: work that no table caused, such as polls and ticks."""
OWN: Final = "process"
"""The kind of what a process does beside its work: it opens, asks queues, and ends."""

Counter = Literal[
    "s3_get",
    "s3_put",
    "s3_list",
    "s3_delete",
    "s3_get_bytes",
    "s3_put_bytes",
    "dynamodb_requests",
    "dynamodb_read_units",
    "dynamodb_write_units",
    "sqs_requests",
    "sqs_polls",
    "kms_requests",
    "other_requests",
    "local_get",
    "local_put",
    "local_list",
    "local_delete",
    "local_get_bytes",
    "local_put_bytes",
    "local_reads",
    "local_writes",
    "lambda_runs",
    "lambda_gb_seconds",
    "fargate_vcpu_seconds",
    "fargate_gb_seconds",
    "address_seconds",
    "emr_vcpu_seconds",
    "emr_gb_seconds",
    "processor_seconds",
    "life_seconds",
    "log_bytes",
    "deleted_bytes",
    "stored_byte_days",
    "local_byte_days",
    "rows_in",
    "rows_merged",
    "rows_read",
    "queries",
]
"""Name of what is counted.

s3_*, sqs_requests, kms_requests, other_requests: requests that were sent, each try of them.
dynamodb_*_units: as the answers say.
sqs_polls: requests that Lambda sends for a queue: one receives a batch, one deletes it.
local_*: the same for objects in a directory, which cost nothing; reads and writes are of SQLite.
rows_in, rows_merged, rows_read: became files, were written by a merge, were given to who asked.
queries: were planned.
address_seconds: in which a task had a public address. log_bytes: of lines for CloudWatch.
stored_byte_days, local_byte_days: bytes of files and garbage, once a day. deleted_bytes: of files
that were deleted as garbage.
"""

Counts = dict[str, float]
"""Amounts by counter. Releases may add counters: an unknown one is kept as it is."""

Seconds = tuple[float, float]
"""Seconds of life and of processor time, since some moment."""


class OfTable(Protocol):
    """An open table."""

    @property
    def id(self) -> str:
        """Its id."""
        ...


TableT = TypeVar("TableT", bound=OfTable)


class UsageEntry(NamedTuple):
    """The usage of one kind of work on one table, since it was last taken."""

    table: str
    kind: str
    counts: Counts


class Usage:
    """Counts of one kind of work on one table, by its id. Safe to share among threads."""

    __slots__ = ("_by_thread", "_taken", "table")

    def __init__(self, table: str = NO_TABLE) -> None:
        self.table = table
        self._by_thread: dict[int, Counts] = {}
        self._taken: Counts = {}

    def count(self, counter: str, amount: float = 1.0) -> None:
        """Add an amount."""
        thread = get_ident()
        counts = self._by_thread.get(thread)
        if counts is None:
            counts = self._by_thread.setdefault(thread, {})
        counts[counter] = counts.get(counter, 0.0) + amount

    def total(self) -> Counts:
        """Return all that was ever counted."""
        found: Counts = {}
        for counts in list(self._by_thread.values()):
            for counter, amount in dict(counts).items():
                found[counter] = found.get(counter, 0.0) + amount
        return found

    def take(self) -> Counts:
        """Return what was counted since this was last called. For one thread at a time."""
        total, before = self.total(), self._taken
        self._taken = total
        more = {counter: amount - before.get(counter, 0.0) for counter, amount in total.items()}
        return {counter: amount for counter, amount in more.items() if amount}


class UsageCollector:
    """The counts of a process's work for one lake, by kind of work and table."""

    def __init__(self) -> None:
        self._usages: dict[tuple[str, str], Usage] = {}
        self._lock = Lock()
        self.own = self.usage(OWN, NO_TABLE)
        """What it does beside its work."""

    def usage(self, kind: str, table: str) -> Usage:
        """Return the counts of a kind of work on a table."""
        key = kind, table
        found = self._usages.get(key)
        return self._usages.setdefault(key, Usage(table)) if found is None else found

    def take(self) -> list[UsageEntry]:
        """Return what was counted since this was last called; nothing is lost or taken twice."""
        with self._lock:
            taken = [(key, usage.take()) for key, usage in list(self._usages.items())]
        return [UsageEntry(table, kind, counts) for (kind, table), counts in taken if counts]


PROCESS: Final = UsageCollector()
"""The collector for threads that work for no lake that they know of."""

_watchers: list[Callable[[Counter, float], None]] = []
_no_seconds: Seconds = 0.0, 0.0
_seconds: list[Callable[[], Seconds]] = [lambda: _no_seconds]
_collector: ContextVar[UsageCollector] = ContextVar("collector", default=PROCESS)
_work: ContextVar[_Work | None] = ContextVar("work", default=None)


def take_time_from(seconds: Callable[[], Seconds]) -> None:
    """Measure how long work takes by a clock. Until it is given one, work takes no time."""
    _seconds[0] = seconds


def collect_in(collector: UsageCollector) -> None:
    """Count what this thread does from now on for the lake that a collector is of."""
    _collector.set(collector)


def count(counter: Counter, amount: float = 1.0) -> None:
    """Add an amount to the work that this thread does."""
    work = _work.get()
    usage = _collector.get().own if work is None else work.usage
    usage.count(counter, amount)
    for watch in _watchers:
        watch(counter, amount)


@contextmanager
def watched(watch: Callable[[Counter, float], None]) -> Iterator[None]:
    """Call `watch` with all that threads of this process count until the `with` ends, in these
    threads: for people who wait and see how far things are."""
    _watchers.append(watch)
    try:
        yield
    finally:
        _watchers.remove(watch)


def count_all(counts: Mapping[str, float]) -> None:
    """Add what another process counted that worked for this one."""
    work = _work.get()
    usage = _collector.get().own if work is None else work.usage
    for counter, amount in counts.items():
        usage.count(counter, amount)


def work(kind: str, table: str = NO_TABLE) -> _Work:
    """Count what is done until the `with` ends as this kind of work on this table, by its id.
    Inside of work on that table it counts as that, and inside of other work as this alone."""
    outer = _work.get()
    if outer is not None and outer.usage.table == table != NO_TABLE:
        return _Work(outer.usage)
    return _Work(_collector.get().usage(kind, table))


def counted_as(
    kind: str,
) -> Callable[
    [Callable[Concatenate[SelfT, TableT, P], T]], Callable[Concatenate[SelfT, TableT, P], T]
]:
    """Count what a method does as a kind of work on the open table that is its first argument."""

    def counted(
        method: Callable[Concatenate[SelfT, TableT, P], T],
    ) -> Callable[Concatenate[SelfT, TableT, P], T]:
        @wraps(method)
        def called(self: SelfT, table: TableT, /, *given: P.args, **named: P.kwargs) -> T:
            with work(kind, table.id):
                return method(self, table, *given, **named)

        return called

    return counted


def uncounted() -> _Work:
    """Count nothing until the `with` ends."""
    return _Work(Usage())


def each(kind: str, table: str, items: Iterator[T]) -> Iterator[T]:
    """Yield items. What it takes to make them is counted as this work; what their user does with
    them is not."""
    making = work(kind, table)
    try:
        while True:
            with making:
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            with making:
                close()


def carried(call: Callable[..., T]) -> Callable[..., T]:
    """Return a call that other threads may make, and that counts as the work of this one."""
    work, collector = _work.get(), _collector.get()

    def made(*given: Any, **named: Any) -> T:  # noqa: ANN401 - the call's own
        in_work, in_collector = _work.set(work), _collector.set(collector)
        try:
            return call(*given, **named)
        finally:
            _work.reset(in_work)
            _collector.reset(in_collector)

    return made


class _Work:
    """Work in hand. It may be entered again and again, one time after another."""

    __slots__ = ("_began", "_clock", "_inner", "_outer", "_token", "usage")

    def __init__(self, usage: Usage) -> None:
        self.usage = usage
        self._began = self._inner = _no_seconds
        self._clock = _seconds[0]
        self._outer: _Work | None = None
        self._token: Token[_Work | None] | None = None

    def __enter__(self) -> Usage:
        if self._token is not None:
            raise AssertionError("work is entered once at a time")
        self._outer = _work.get()
        self._inner = _no_seconds
        self._token = _work.set(self)
        self._clock = _seconds[0]  # also at the end, whatever clock is given meanwhile
        self._began = self._clock()
        return self.usage

    def __exit__(self, *_: object) -> None:
        assert self._token is not None, "it was entered"
        life, processor = self._clock()
        life, processor = life - self._began[0], processor - self._began[1]
        _work.reset(self._token)
        self._token = None
        self.usage.count("life_seconds", max(0.0, life - self._inner[0]))
        self.usage.count("processor_seconds", max(0.0, processor - self._inner[1]))
        if self._outer is not None:
            inner = self._outer._inner  # noqa: SLF001 - the same class
            self._outer._inner = inner[0] + life, inner[1] + processor  # noqa: SLF001 - the same
