"""One statement in an engine of its own: its rows as a stream, its errors as ours, its end."""

from __future__ import annotations

import atexit
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import duckdb
import pyarrow as pa

from lakebed.errors import LakebedError
from lakebed.query.datasets import TableDataset
from lakebed.sql.interrupts import CURRENT
from lakebed.sql.shut_engine import engine_error, interrupted, lock
from lakebed.sql.statement import SYSTEM_SCHEMA

BATCH_ROWS = 65_536
"""Rows of a batch that the engine gives."""
_ENGINE_ERRORS = (duckdb.Error, pa.ArrowException, RuntimeError, OSError, ValueError)
_EXPLAINED = "EXPLAIN\n"
_CLOSED = "it was closed before its last row"

Parameters = Sequence[object] | Mapping[str, object]


class SqlWork:
    """One statement. Close it, or drop the stream that it gave."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connections = [connection]
        self._datasets: list[TableDataset] = []
        self._reader: pa.RecordBatchReader | None = None
        self._closing = threading.Lock()
        _OPEN.add(self)
        if (interrupts := CURRENT.get()) is not None:
            interrupts.add(self)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """Return the engine, until this is closed: a connection that is kept is told as a leak at
        exit."""
        return self._connections[0]

    def give(self, name: str, dataset: TableDataset) -> None:
        """Let a name stand for a table."""
        self._datasets.append(dataset)
        self.connection.register(name, dataset)

    def give_system_tables(self, tables: Mapping[str, pa.Table]) -> None:
        """Let names of the schema `lakebed` stand for rows."""
        self._run(f"CREATE SCHEMA {SYSTEM_SCHEMA}")
        for name, rows in tables.items():
            self.connection.register(f"{SYSTEM_SCHEMA} {name}", rows)
            self._run(f'CREATE VIEW {SYSTEM_SCHEMA}."{name}" AS FROM "{SYSTEM_SCHEMA} {name}"')
        lock(self.connection)

    def _run(self, text: str) -> None:
        self.connection.execute(text).fetchall()

    def stream(self, text: str, parameters: Parameters) -> pa.RecordBatchReader:
        """Begin the statement, and return its rows; at their end, or when they are dropped, all is
        closed."""
        given = parameters if isinstance(parameters, Mapping) else list(parameters)
        try:
            relation = self.connection.sql(text, params=given or None)
            assert relation is not None, "a SELECT gives rows"
            self._reader = relation.to_arrow_reader(BATCH_ROWS)
        except _ENGINE_ERRORS as error:
            raise self._located_error(error, text, given) from error
        return pa.RecordBatchReader.from_batches(self._reader.schema, self._batches())

    def profile(self, text: str, parameters: Parameters) -> str:
        """Run the statement, throw its rows away, and return the engine's plan with its times."""
        return self._explained(f"EXPLAIN ANALYZE {text}", text, parameters)

    def plan(self, text: str, parameters: Parameters) -> Any:  # noqa: ANN401 - the engine's JSON
        """Return the engine's plan of the statement, which is not run: a list of trees, each a
        mapping of `name`, `children` and `extra_info`."""
        return json.loads(self._explained(f"EXPLAIN (FORMAT json) {text}", text, parameters))

    def _explained(self, explain: str, text: str, parameters: Parameters) -> str:
        given = parameters if isinstance(parameters, Mapping) else list(parameters)
        try:
            answer = self.connection.execute(explain, given or None).fetchall()
        except _ENGINE_ERRORS as error:
            raise self._located_error(error, text, given) from error
        return str(answer[-1][-1])

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            while (batch := self._next()) is not None:
                if batch.num_rows:
                    yield batch
        finally:
            self.close()

    def _next(self) -> pa.RecordBatch | None:
        reader = self._reader
        if reader is None:  # the rows so far are not all
            raise interrupted(_CLOSED)
        try:
            return reader.read_next_batch()
        except StopIteration:
            if self._reader is None:  # is it the statement's end, or the engine's?
                raise interrupted(_CLOSED) from None
            return None
        except _ENGINE_ERRORS as error:
            raise self._own(error) or engine_error(error) from error

    def _own(self, error: Exception) -> LakebedError | None:
        """Return our error that the engine passed on as text; None: it is the engine's."""
        if isinstance(error, LakebedError):
            return error
        return next((d.problem for d in self._datasets if d.problem is not None), None)

    def _located_error(self, error: Exception, text: str, parameters: object) -> LakebedError:
        """Return what an error means. A relation's does not say where: explaining the text does."""
        own = self._own(error)
        if own is not None:
            return own
        if isinstance(error, (duckdb.BinderException, duckdb.CatalogException)):
            try:
                self.connection.execute(_EXPLAINED + text, parameters or None).fetchall()
            except duckdb.Error as located:
                return engine_error(located, lines_before=_EXPLAINED.count("\n"))
        return engine_error(error)

    def interrupt(self) -> None:
        """End what runs. Safe to call from another thread."""
        for connection in list(self._connections):
            with suppress(duckdb.Error):
                connection.interrupt()

    def close(self) -> None:
        """End what runs, and close the engine. Safe to call again, and from another thread: then
        the one that waits for rows, or asks for more, gets an error, and closes it."""
        self.interrupt()
        with self._closing:
            self._reader = None
            while self._connections:
                try:
                    self._connections[-1].close()
                except duckdb.ResourceInUseException:  # by the thread that was just interrupted
                    return
                self._connections.pop()
        _OPEN.discard(self)


_OPEN: WeakSet[SqlWork] = WeakSet()
"""Engines that are not closed. DuckDB tells of what is left open when a process ends."""


@atexit.register
def _close_all() -> None:
    for work in list(_OPEN):
        work.close()
