"""Keeps what a unit of work used: writes a line of the log at its end, and adds it to the
ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Final

import msgspec

from lakebed.errors import DeniedError, LakebedError
from lakebed.observe import events, usage
from lakebed.observe.usage import NO_TABLE, PROCESS, Counts, UsageCollector, UsageEntry
from lakebed.ports.clock import Clock
from lakebed.ports.paying.usage_ledger import LedgerEntry, UsageLedger, hour_of

HELD_SECONDS: Final = 600.0
"""Seconds for which a process holds back the usage that no table caused."""
DECIMALS: Final = 6
"""Decimal places of amounts: a microsecond, a millionth of a unit."""


class RunsOn(msgspec.Struct, frozen=True, kw_only=True):
    """The computing resources of a process, which are paid for by the second.

    lambda_gb: memory of a function.
    vcpus, gb: of a task.
    in_runs: its units are runs of a function, each caused by the tables that it works on: what no
        table caused in a run counts as the first one's.
    """

    lambda_gb: float = 0.0
    vcpus: float = 0.0
    gb: float = 0.0
    in_runs: bool = False


class UsageKeeper:
    """Keeps what a process used for one lake, with one request at most for each unit of work.

    ledger: None: it is not kept. collector: counts for this lake; what threads counted that know of
    no lake is kept as well.
    """

    def __init__(
        self,
        ledger: UsageLedger | None,
        *,
        clock: Clock,
        collector: UsageCollector | None = None,
        runs_on: RunsOn | None = None,
    ) -> None:
        self.collector = collector or UsageCollector()
        self._ledger = ledger
        self._clock = clock
        self._runs_on = runs_on or RunsOn()
        self._held: dict[str, Counts] = {}
        self._kept = clock.monotonic()
        self._lock = Lock()

    def keep(self) -> None:
        """Keep what was used since the last time. An error of the ledger is logged, and work goes
        on."""
        self._keep(is_last=False)

    def keep_if_due(self) -> None:
        """Keep what was used, if that was not done for a while: called at each use of a lake."""
        if self._clock.monotonic() - self._kept >= HELD_SECONDS:
            self._keep(is_last=True)

    def close(self) -> None:
        """Keep what is left."""
        self._keep(is_last=True)

    def _keep(self, *, is_last: bool) -> None:
        ledger = self._ledger
        if ledger is None:
            return
        with self._lock:
            entries = self._due(is_last=is_last)
        for one in entries:
            self._write(ledger, one)

    def _due(self, *, is_last: bool) -> list[UsageEntry]:
        """Return what is to be written now. What no table caused waits for a while, unless it is of
        a run of a function: there may not be another."""
        taken = _merged([*self.collector.take(), *PROCESS.take()])
        due = [one for one in taken if one.table != NO_TABLE]
        of_none = [one for one in taken if one.table == NO_TABLE]
        if self._runs_on.in_runs:
            due = due or of_none[:1]
            due[:1] = [_all_as(one, [o for o in of_none if o is not one]) for one in due[:1]]
        else:
            for one in of_none:
                _add(self._held.setdefault(one.kind, {}), one.counts)
        now = self._clock.monotonic()
        if is_last or now - self._kept >= HELD_SECONDS:
            due += [UsageEntry(NO_TABLE, kind, counts) for kind, counts in self._held.items()]
            self._held, self._kept = {}, now
        return due

    def _write(self, ledger: UsageLedger, entry: UsageEntry) -> None:
        table, kind, used = entry
        counts = self._paid(used, ledger.taken_by_add)
        hour = hour_of(self._clock.now())
        try:
            with usage.uncounted():
                facts: dict[str, Any] = dict(counts)
                events.emit(events.USAGE_COUNTED, table=table, kind=kind, **facts)
                ledger.add(LedgerEntry(table=table, hour=hour, kind=kind, counts=counts))
        except LakebedError as error:
            if isinstance(error, DeniedError):  # nor will it be permitted the next time
                self._ledger = None
            events.emit(events.USAGE_LOST, table=table, kind=kind, code=error.code())

    def _paid(self, used: Counts, taken_by_add: Mapping[str, float]) -> Counts:
        """Return counts with the write of themselves, and what is paid for by the second."""
        on, counts = self._runs_on, dict(used)
        _add(counts, taken_by_add)
        life = counts.get("life_seconds", 0.0)
        by_second = {
            "lambda_gb_seconds": life * on.lambda_gb,
            "fargate_vcpu_seconds": life * on.vcpus,
            "fargate_gb_seconds": life * on.gb,
            "address_seconds": life if on.vcpus else 0.0,
        }
        _add(counts, by_second)
        return {name: round(amount, DECIMALS) for name, amount in counts.items() if amount}


def _merged(entries: Sequence[UsageEntry]) -> list[UsageEntry]:
    """Return one entry for each kind of work on a table."""
    found: dict[tuple[str, str], Counts] = {}
    for one in entries:
        _add(found.setdefault((one.table, one.kind), {}), one.counts)
    return [UsageEntry(table, kind, counts) for (table, kind), counts in found.items()]


def _all_as(first: UsageEntry, others: Sequence[UsageEntry]) -> UsageEntry:
    counts = dict(first.counts)
    for one in others:
        _add(counts, one.counts)
    return first._replace(counts=counts)


def _add(counts: Counts, more: Mapping[str, float]) -> None:
    for counter, amount in more.items():
        counts[counter] = counts.get(counter, 0.0) + amount
