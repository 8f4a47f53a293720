"""Looks at a lake while processes feed it: no position may be ahead of its rows."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from lakebed.bootstrap.app import App
from lakebed.bootstrap.local import open_local
from lakebed.errors import TableMissingError, VersionExpiredError
from lakebed.model.names import table_name
from lakebed.statestore.table_state.feed_records import connections, positions_of
from tests.e2e.feeds.fed_lake import id_of

IdOf = Callable[[str, int], int | None]
"""Gives the id of the record at a position of a source split; None: it is not known yet."""
Look = Callable[[App], Iterable[str]]
"""Yields what is wrong with a lake now."""

LOOK_SECONDS = 0.1
GAP_SECONDS_MAX = 5.0
"""Between two looks, as a rule: a look reads all rows, and tests share a machine."""


class Watcher:
    """Takes some looks at a lake again and again, in a thread. They must not find a thing."""

    def __init__(self, lake: Path, *looks: Look) -> None:
        self._lake = lake
        self._looks = looks
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._looked: list[float] = []
        self.wrong: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.check()
        assert len(self._looked) > 1, f"it has looked {len(self._looked)} times"
        gap = statistics.median(after - before for before, after in pairwise(self._looked))
        assert gap < GAP_SECONDS_MAX, f"it looks each {gap:.1f} s"

    def check(self) -> None:
        """Nothing was wrong so far."""
        assert not self.wrong, self.wrong

    def _watch(self) -> None:
        try:
            app = open_local(self._lake, create=False)
            while not self._ended.wait(LOOK_SECONDS):
                try:
                    for look in self._looks:
                        self.wrong += look(app)
                except VersionExpiredError:  # compacted meanwhile: it looks again
                    continue
                self._looked.append(time.monotonic())
            app.close()
        except BaseException as error:
            self.wrong.append(repr(error))
            raise


class TakenRecords:
    """Looks whether all that the positions of `orders` say to be taken is in the tables, once.

    ids: gives, for one look, which ids records have.
    compared: how many records were looked for so far; each counts once.
    """

    def __init__(self, ids: Callable[[App], IdOf]) -> None:
        self._ids = ids
        self._ends: dict[str, int] = {}
        self._unknown: list[tuple[str, int]] = []
        self.compared = 0

    def __call__(self, app: App) -> Iterator[str]:
        ends = positions(app, "orders")
        fresh = [  # before rows are read: these only grow
            (split, position)
            for split, end in ends.items()
            for position in range(self._ends.get(split, 0), end)
        ]
        id_at = self._ids(app)
        new = {record: id_at(*record) for record in (*self._unknown, *fresh)}
        there = [id_ for (id_,) in rows_of(app, "orders", "id")]
        there += [id_of(value) for (value,) in rows_of(app, "orders_quarantine", "value")]
        known = set(there)
        if len(known) != len(there):
            yield "a record is doubled"
        taken = [id_ for id_ in new.values() if id_ is not None]
        gone = [id_ for id_ in taken if id_ not in known]
        if gone:
            yield f"taken, and not there: {gone[:10]}"
        self._unknown = [record for record, id_ in new.items() if id_ is None]
        self._ends = ends
        self.compared += len(taken)


def positions(app: App, table: str) -> dict[str, int]:
    """Return how far each source split was taken into a table, as far as there is one."""
    try:
        head = app.catalog.find(table_name(table)).head
    except TableMissingError:
        return {}
    head.follow()
    with head.reading() as state:
        return {
            name: int(position.next)
            for one in connections(state)
            for name, position, _ in positions_of(state, one.id)
        }


def rows_of(app: App, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Return some columns of all rows of a table, as far as there is one."""
    try:
        found = app.query.run(app.catalog.find(table_name(table)))
        return [row for rows in found for row in zip(*_lists(rows, columns), strict=True)]
    except TableMissingError:
        return []


def landed_ids(app: App) -> IdOf:
    """Return what says which id a record of the landing table has."""
    rows = rows_of(app, "orders_landing", "source_split", "position", "value")
    values: dict[tuple[str, int], bytes] = {(split, at): value for split, at, value in rows}

    def id_at(split: str, position: int) -> int | None:
        value = values.get((split, position))
        return None if value is None else id_of(value)

    return id_at


def _lists(rows: pa.RecordBatch, columns: Iterable[str]) -> list[list[Any]]:
    return [rows[column].to_pylist() for column in columns]
