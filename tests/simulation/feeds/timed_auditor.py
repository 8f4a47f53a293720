"""Looks at event time in each entry of a table that a feed fills: the watermark, and the rows of
sealed windows. It has its own memory of what owners said of source splits."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from lakebed.model.feeds.windows import TIME_MIN, WindowRules
from lakebed.model.names import MICROS_PER_SECOND, Micros, TransactionNumber
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.log_entries.window_changes import Advance
from lakebed.statestore.table_state.feed_records import connection_of
from lakebed.statestore.table_state.state import Moment
from lakebed.statestore.table_state.window_records import watermark_of, windows_of
from tests.properties.feeds.test_event_time import Said
from tests.simulation.feeds.fed_auditor import FedAuditor
from tests.simulation.feeds.fed_world import CONNECTION
from tests.simulation.violation import FED_SEALED, FED_WATERMARK, Violation


class TimedAuditor(FedAuditor):
    """An auditor that looks at event time, too.

    rules: of the connection; None: it has no event time.
    watermark, sealed: as event times and log time allow; None: not known yet.
    rows: by the start of a window: entries, and how many rows each stored in it.
    late: how many rows of a window were diverted.
    """

    rules: WindowRules | None = None

    def __init__(self, *given: Any) -> None:  # noqa: ANN401 - what auditors are given
        super().__init__(*given)
        self.watermark: int | None = None
        self.rows: defaultdict[Micros, list[tuple[TransactionNumber, int]]] = defaultdict(list)
        self.late: Counter[Micros] = Counter()
        self._said: dict[str, Said] = {}
        self._reached: int | None = None

    @property
    def sealed(self) -> int | None:
        """Windows that end there, or before, are sealed; None: none is."""
        if self.watermark is None or self.rules is None:
            return None
        return self.watermark - self.rules.seal_seconds * MICROS_PER_SECOND

    def is_sealed(self, start: int) -> bool:
        """Whether the window with this start is sealed."""
        assert self.rules is not None, "without rules there are no windows"
        return self.sealed is not None and start + self.rules.window <= self.sealed

    def landed(self, number: TransactionNumber, body: bytes) -> None:
        """Look at an entry that was just written."""
        super().landed(number, body)
        known = connection_of(self.state, CONNECTION) if self._said else None
        if known is None:
            return
        found = watermark_of(self.state, known)
        if found.time != self.watermark:
            story = f"entry {number} leaves {found}, event times allow {self.watermark}"
            raise Violation(FED_WATERMARK, story)
        if found.sealed != self.sealed:
            story = f"entry {number} leaves {found}, the watermark seals to {self.sealed}"
            raise Violation(FED_SEALED, story)

    def _note(self, transaction: Transaction, moment: Moment) -> None:
        super()._note(transaction, moment)
        for change in transaction.changes:
            if isinstance(change, Advance) and self.rules is not None:
                self._note_windows(change, moment, self.rules)
                self._note_splits(change, moment, self.rules)

    def _note_windows(self, change: Advance, moment: Moment, rules: WindowRules) -> None:
        for window in change.windows:
            is_sealed = self.is_sealed(window.start)
            if window.rows and is_sealed and rules.late != "accept":
                story = f"entry {moment.number} has {window.rows} rows of a sealed window"
                raise Violation(FED_SEALED, story)
            if window.late and not is_sealed:
                raise Violation(FED_SEALED, f"entry {moment.number} calls rows late that are not")
            if window.rows:
                self.rows[window.start].append((moment.number, window.rows))
            self.late[window.start] += window.late

    def _note_splits(self, change: Advance, moment: Moment, rules: WindowRules) -> None:
        for split in change.splits:
            said = self._said.setdefault(split.source_split, Said(None))
            if split.event_time is not None:
                said.time = max(split.event_time, *_some(said.time))
                self._reached = max(split.event_time, *_some(self._reached))
            if split.event_time is not None or not split.caught_up:
                said.caught_up = []
            if split.caught_up:
                said.caught_up.append(moment.at)
        busy = [one for one in self._said.values() if not one.is_idle(moment.at)]
        times = [one.time for one in busy if one.time is not None]
        if len(times) < len(busy) or (not busy and self._reached is None):
            return
        allowed = min(times) if busy else self._reached
        assert allowed is not None
        reached = allowed - rules.disorder_seconds * MICROS_PER_SECOND
        self.watermark = max(reached, *_some(self.watermark))


def _some(time: int | None) -> tuple[int, ...]:
    """Return a time that is known, or one before all."""
    return (TIME_MIN if time is None else time,)


def check_windows(auditor: TimedAuditor, rows: Counter[Micros] | None) -> None:
    """Hold the windows of a table against what entries stored in them, and against its rows: as of
    the number of a sealed one it is complete.

    rows: of the table by the start of their window; None: some were cleared.

    Raises:
        Violation: they differ.
    """
    known, rules = connection_of(auditor.state, CONNECTION), auditor.rules
    if known is None or rules is None:
        return
    sums = Counter({start: sum(n for _, n in some) for start, some in auditor.rows.items()})
    found = Counter[Micros]()
    for window in windows_of(auditor.state, known):
        assert window.start is not None, "none is so old that it is folded"
        found[window.start] = window.rows
        if (window.sealed is not None) != auditor.is_sealed(window.start):
            raise Violation(FED_SEALED, f"{window} is not what the watermark has passed")
        if window.sealed is None:
            continue
        after = sum(n for number, n in auditor.rows[window.start] if number > window.sealed)
        if rules.late != "accept" and (after or window.number != window.sealed):
            raise Violation(FED_SEALED, f"{window} got {after} rows when it was sealed")
        if rules.late != "accept" and window.late != auditor.late[window.start]:
            story = f"{window} had {auditor.late[window.start]} late rows"
            raise Violation(FED_SEALED, story)
    if +found != +sums or (rows is not None and +found != +rows):
        raise Violation(FED_SEALED, f"windows count {found}, entries {sums}, the table has {rows}")
