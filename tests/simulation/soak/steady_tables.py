"""The tables of long days, the rows that they are given, and what queries must give of them.

None grows with time: rows with equal keys become one, or rows age off. Each request has a row for
each leaf, so each leaf gets a file from it.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable

from lakebed import AgeOff, Latest, Processing
from lakebed.model.names import MICROS_PER_SECOND, CommitId, Micros, digest_of
from lakebed.model.schema import schema_of
from tests.simulation.rows import Request, Row

KEYS_PER_LEAF = 3
AGE_SECONDS = 4 * 3_600
SCHEMA = schema_of(row_keys={"key": "int64"}, values={"id": "int64", "born": "int64"})
"""id: of the row, that no other row of the table has."""
PROCESSING = {
    "sums": Processing(aggregate={"id": "sum", "born": "max"}),
    "newest": Processing(latest=Latest("id")),
    "aged": Processing(age_off=AgeOff("born", seconds=AGE_SECONDS, unit="us")),
}


class SteadyRows:
    """What one table is given. kind: of `PROCESSING`. now: true time."""

    def __init__(
        self, kind: str, *, leaves: int, rng: random.Random, now: Callable[[], Micros]
    ) -> None:
        self.kind = kind
        self._leaves = leaves
        self._rng = rng
        self._now = now
        self._last = 0
        self._by_key: dict[int, Row] = {}
        self._young: deque[Row] = deque()

    def points(self) -> list[object]:
        """Return the keys between the leaves."""
        return [leaf * KEYS_PER_LEAF for leaf in range(1, self._leaves)]

    def request(self) -> Request:
        """Return new rows, one for each leaf."""
        rows = []
        for leaf in range(self._leaves):
            self._last += 1
            key = leaf * KEYS_PER_LEAF + self._rng.randrange(KEYS_PER_LEAF)
            rows.append((key, self._last, self._now()))
        id_ = CommitId(f"{self.kind}-{self._last}")
        return Request(id_, digest_of(id_.encode()), (tuple(rows),))

    def landed(self, request: Request) -> None:
        """Remember that the rows of a request are in the table."""
        for row in request.batches[0]:
            if self.kind == "aged":
                self._young.append(row)
            else:
                key, id_, born = row
                before = self._by_key.get(key, (key, 0, born))
                sums = self.kind == "sums"
                self._by_key[key] = (key, id_ + (before[1] if sums else 0), max(born, before[2]))

    def wanted(self, at: Micros) -> Counter[Row]:
        """Return what a query gives by whose time it is `at`, later than at the last call."""
        oldest = at - AGE_SECONDS * MICROS_PER_SECOND
        while self._young and self._young[0][2] < oldest:
            self._young.popleft()
        return Counter(self._young) + Counter(self._by_key.values())
