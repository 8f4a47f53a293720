"""Runs SQL over tables of a lake: each at one version, read as the engine asks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import msgspec
import pyarrow as pa

from lakebed.errors import InvalidError, TableMissingError, did_you_mean
from lakebed.query.datasets import TableDataset, TableScanner
from lakebed.query.one_version import OneVersion
from lakebed.query.run_query import RunQuery
from lakebed.sql.asked_versions import AsOfTables, asked_versions
from lakebed.sql.shut_engine import ShutEngine, new_engine
from lakebed.sql.sql_work import Parameters, SqlWork
from lakebed.sql.statement import SYSTEM_SCHEMA, parsed
from lakebed.statestore.open_table import OpenTable

SystemTables = Mapping[str, Callable[[], pa.Table]]


class SqlTables(msgspec.Struct, frozen=True):
    """The tables that the names of a statement lead to.

    table: opens a table of the lake.
    names: of all of them, for hints.
    system_tables: of the schema `lakebed`, by name; made when they are named.
    """

    table: Callable[[str], OpenTable]
    names: Callable[[], Sequence[str]]
    system_tables: SystemTables


class SqlLimits(msgspec.Struct, frozen=True):
    """The limits of one statement, and the callback that hears how far it is.

    scan_bytes_max: of files, in each scan of a table; less than the table allows; None: as much.
    on_progress: is called with how many rows all scans have read so far.
    """

    scan_bytes_max: int | None = None
    on_progress: Callable[[int], None] = lambda _rows: None


NO_LIMITS = SqlLimits()


class _RowsRead:
    """Sums the rows of scans, which the engine reads in threads of its own."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._rows = 0

    def add(self, rows: int) -> None:
        """Add the rows of a batch, and tell the sum."""
        with self._lock:
            self._rows += rows
            self._tell(self._rows)


class RunSql:
    """Answers questions in SQL. monotonic: seconds. limits: of each statement."""

    def __init__(
        self,
        query: RunQuery[pa.RecordBatch],
        tables: SqlTables,
        *,
        engine: ShutEngine,
        monotonic: Callable[[], float],
        limits: SqlLimits = NO_LIMITS,
    ) -> None:
        self._limits = limits
        self._query = query
        self._tables = tables
        self._engine = engine
        self._monotonic = monotonic

    def run(
        self,
        text: str,
        parameters: Parameters = (),
        *,
        this: OpenTable | None = None,
        as_of: AsOfTables | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows that a SELECT gives, as a stream. Dropping it ends the work.

        parameters: of `?` a list, of `$name` a mapping.
        this: the table that is called `this`.
        as_of: the version of all tables, or by name; None: the newest.

        Raises:
            InvalidError: not one SELECT, a table or function that there is not, a value that does
                not fit; while reading, too. As `asked_versions`. TableMissingError: no table has
                the name. VersionExpiredError: a version is not kept any more.
            As `RunQuery.scan`: while reading.
        """
        work = self.begin(text, this=this, as_of=as_of)
        try:
            return work.stream(text, parameters)
        except BaseException:
            work.close()
            raise

    def begin(
        self,
        text: str,
        *,
        this: OpenTable | None = None,
        as_of: AsOfTables | None = None,
        on_scan: Callable[[str, TableScanner], None] = lambda _name, _scanner: None,
    ) -> SqlWork:
        """Return an engine that knows the tables which a text names. Close it.

        on_scan: called with the name of a table, and what reads it, each time one is read.
        """
        work = SqlWork(self._engine.connection())
        rows_read = _RowsRead(self._limits.on_progress)
        try:
            statement = parsed(work.connection, text)
            versions = asked_versions(as_of, statement)
            if statement.system_tables:
                work.close()
                work = self._with_system_tables(statement.system_tables)
            for name in sorted(statement.tables):
                table = this if this is not None and name == "this" else self._table(name)
                version = OneVersion(self._query, table, as_of=versions.get(name))
                version.cap(self._limits.scan_bytes_max)
                work.give(name, self._dataset(name, version, on_scan, rows_read))
        except BaseException:
            work.close()
            raise
        return work

    def _table(self, name: str) -> OpenTable:
        try:
            return self._tables.table(name)
        except TableMissingError:
            raise
        except InvalidError:  # not a name that a table can have
            hint = did_you_mean(name, self._tables.names(), what="table")
            raise InvalidError("no such table", name=ascii(name)[:200], hint=hint) from None

    def _dataset(
        self,
        name: str,
        version: OneVersion[pa.RecordBatch],
        on_scan: Callable[[str, TableScanner], None],
        rows_read: _RowsRead,
    ) -> TableDataset:
        def begun(scanner: TableScanner) -> None:
            scanner.on_rows = rows_read.add
            on_scan(name, scanner)

        return TableDataset(version, monotonic=self._monotonic, on_scan=begun)

    def _with_system_tables(self, names: frozenset[str]) -> SqlWork:
        """Return work in an engine of its own: schemas are shared by all that one engine does."""
        known = self._tables.system_tables
        for name in sorted(names):
            if name not in known:
                hint = did_you_mean(name, known, what="table")
                raise InvalidError("no such table", name=f"{SYSTEM_SCHEMA}.{name}", hint=hint)
        rows = {name: known[name]() for name in sorted(names)}
        engine = self._engine
        work = SqlWork(new_engine(engine.spill, memory_bytes=engine.memory_bytes))
        try:
            work.give_system_tables(rows)
        except BaseException:
            work.close()
            raise
        return work
