"""A world with a feed whose records have event times: rows are counted in windows, and those of
sealed windows are late (protocol R18, R19). With its twins."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lakebed.feeds.made_rows import KnownBefore, MadeRows
from lakebed.model.feeds.windows import LateRows, WindowCount, WindowRules, window_start
from lakebed.model.names import MICROS_PER_SECOND, ConnectionId, Micros, TableId
from lakebed.ports.record_source import Records
from lakebed.statestore.open_table import OpenTable
from tests.properties.feeds import test_event_time as broken
from tests.properties.feeds.test_event_time import DISORDER, IDLE, SEAL, WINDOW
from tests.simulation import violation as v
from tests.simulation.auditor import Auditor
from tests.simulation.feeds.fed_checks import ids_in
from tests.simulation.feeds.fed_rows import ModelRows, TimeMishap
from tests.simulation.feeds.fed_twins import FedTwin
from tests.simulation.feeds.fed_world import FedWorld, OwnsAs
from tests.simulation.feeds.once_world import OwnsSome
from tests.simulation.feeds.timed_auditor import TimedAuditor, check_windows
from tests.simulation.machine import Machine, Parts

AHEAD = 366 * 86_400
STEP_SECONDS = 3
OLD_EVERY, OLD_SECONDS = 9, 60
"""Of so many records one is older than the disorder allows."""


class TimedRows(ModelRows):
    """Makes rows with event times. time_of: gives that of a record, by its id."""

    def __init__(
        self,
        connection: ConnectionId,
        rng: random.Random,
        *,
        width: int,
        rules: WindowRules,
        time_of: Callable[[int], Micros],
    ) -> None:
        super().__init__(connection, rng, width=width)
        self._rules = rules
        self._time_of = time_of
        self._diverted: set[int] = set()

    @property
    def windows(self) -> WindowRules:
        """Those of the world."""
        return self._rules

    def __call__(
        self, split: str, records: Records[list[Any]], known: KnownBefore[list[Any]]
    ) -> MadeRows[list[Any]]:
        """Return what became of some records."""
        self._diverted = {id_ for _, id_ in records.batch if self._is_late(id_, known.sealed)}
        made = super().__call__(split, records, known)
        stored = [row[3] for row in made.rows or ()]
        late = [row[3] for row in made.quarantine or () if row[3] in self._diverted]
        rows, left_out = self._by_window(stored), self._by_window(late)
        return msgspec.structs.replace(
            made,
            newest=max(map(self._time_of, stored + late), default=None),
            windows=tuple(
                WindowCount(start, rows[start], left_out[start])
                for start in sorted(rows.keys() | left_out.keys())
            ),
        )

    def _by_window(self, ids: list[int]) -> Counter[Micros]:
        return Counter(window_start(self._time_of(id_), WINDOW) for id_ in ids)

    def _is_late(self, id_: int, sealed: Micros | None) -> bool:
        if self._rules.late == "accept" or sealed is None:
            return False
        return window_start(self._time_of(id_), WINDOW) + self._rules.window <= sealed

    def _is_bad(self, split: str, position: int, id_: int) -> bool:
        return id_ in self._diverted or super()._is_bad(split, position, id_)


class TimedWorld(FedWorld):
    """All that one seed decides, with event time. Workers own a part of the source splits each, so
    that windows are sealed by others."""

    late: Sequence[LateRows] = ("divert", "divert", "accept")
    idle_seconds = IDLE

    def __init__(self, seed: int, scratch: Path, parts: Parts | None = None) -> None:
        super().__init__(seed, scratch, parts)
        self.source.grow()
        late = self.rng.choice(self.late)
        self.rules = WindowRules(WINDOW, DISORDER, SEAL, IDLE, AHEAD, late)
        self.begin = window_start(self.clock.now(), WINDOW)
        self.timed_auditor.rules = self.rules

    def auditor_of(self, table: TableId) -> Auditor:
        """Return a table's auditor."""
        if table not in self.auditors:
            self.auditors[table] = TimedAuditor(table, self.clock, self._requests, self._facts)
        return self.auditors[table]

    @property
    def timed_auditor(self) -> TimedAuditor:
        """That of the table which the feed fills."""
        found = self.fed_auditor
        assert isinstance(found, TimedAuditor)
        return found

    def time_of(self, id_: int) -> Micros:
        """Return the event time of a record: they rise as records are produced, but for the
        disorder, and for some that come much later."""
        behind = id_ * 7_919 % (DISORDER + 1) + (OLD_SECONDS if id_ % OLD_EVERY == 0 else 0)
        seconds = STEP_SECONDS * id_ + DISORDER - behind
        return Micros(self.begin + seconds * MICROS_PER_SECOND)

    def make_rows(self) -> ModelRows:
        """Return what makes rows of records."""
        return TimedRows(
            self.connection, self.rng, width=self.width, rules=self.rules, time_of=self.time_of
        )

    def owned_as(self, owner: int) -> OwnsAs:
        """Return what a worker believes to own."""
        return OwnsSome(owner)

    def counts(self) -> Counter[str]:
        """Return how often each thing happened, to event time too."""
        auditor = self.timed_auditor
        sealed, late = auditor.sealed is not None, auditor.late.total()
        own = {str(TimeMishap.SEALED): int(sealed), str(TimeMishap.LATE): late}
        return super().counts() + Counter(own)

    def check_rows(self, machine: Machine, table: OpenTable, auditor: Auditor) -> None:
        """Compare what the feed filled with what its source ever gave."""
        super().check_rows(machine, table, auditor)
        if table.id == self.fed.id:
            ids = ids_in(machine, table)
            rows = Counter(window_start(self.time_of(id_), WINDOW) for id_ in ids)
            check_windows(self.timed_auditor, None if auditor.cleared_at else rows)


def _twin(patch: Callable[[pytest.MonkeyPatch], None], *checkers: str) -> FedTwin:
    return FedTwin(frozenset(checkers), (patch,), TimedWorld)


TIMED_TWINS = {
    "watermark goes back": _twin(broken.goes_back, v.FED_WATERMARK),
    "idle by its own clock": _twin(broken.believes_its_own_clock, v.FED_WATERMARK, v.REPLAY),
    "sealed by the furthest source split": _twin(broken.seals_by_the_furthest_split, v.FED_SEALED),
    "takes rows of sealed windows": _twin(broken.takes_rows_of_sealed_windows, v.FED_SEALED),
}
