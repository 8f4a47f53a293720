"""SQLite's transactions on a state that proves itself before anything is read of it (H37)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lakebed.errors import CacheDamagedError
from lakebed.statestore.table_state.database_errors import (
    DATABASE_ERRORS,
    FREE_SPACE,
    is_doubtful,
    translated,
)
from lakebed.statestore.table_state.database_lock import begin_writing
from lakebed.statestore.table_state.layout import BUSY_SECONDS, require_format
from lakebed.statestore.table_state.sum_triggers import SumTriggers
from lakebed.statestore.table_state.sums import (
    PendingSums,
    damaged,
    verify_all,
    verify_at_open,
    verify_table,
)


class ProvenState:
    """A state's database. It proves itself when it is opened, and again when another process has
    written to it: then SQLite reads its pages anew. full_hint: what to do when its disk is full."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.full_hint = FREE_SPACE
        self._run = connection.execute
        self._triggers = SumTriggers(connection)
        self._pending = PendingSums()
        # What SQLite's data_version was when the state proved itself; and whether all of it did.
        self._proven_at: int | None = None
        self._is_proven_whole = False
        self._proven_tables: set[str] = set()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See one version from the first read to the end (H27: close it soon).

        Raises:
            CacheDamagedError: it does not prove itself. UnavailableError: the database is busy.
        """
        if self.connection.in_transaction:
            yield
            return
        with self.translating():
            try:
                self._run("BEGIN")
                self._prove_as_opened()
                yield
            finally:
                self._roll_back()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the only right to write; kept at the end, undone by any exception.

        Raises:
            UnavailableError: the database is busy or its disk full; nothing was kept.
            CacheDamagedError: it does not prove itself; the same.
        """
        if self.connection.in_transaction:
            raise AssertionError("writing inside of reading or writing")
        with self.translating():
            try:
                begin_writing(self.connection, seconds_max=BUSY_SECONDS)
                self._prove_as_opened()
                yield
                self._pending.write(self.connection)
                self._run("COMMIT")
                self._triggers.committed()
                self._is_proven_whole = False  # what is read from now on may have been written now
            except BaseException:
                self._undo()
                raise
            finally:
                self._forget()

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Turn errors of the database into those that say what to do next."""
        try:
            yield
        except DATABASE_ERRORS as error:
            raise self._meaning_of(error) from error

    def _meaning_of(self, error: Exception) -> Exception:
        """Return what an error means: what looks like a bug is one only if the state proves
        itself."""
        if is_doubtful(error):
            try:
                self._roll_back()
                verify_all(self.connection)
            except CacheDamagedError as damage:
                return damage
            except DATABASE_ERRORS as other:
                return damaged("pages", problem=other)
        return translated(error, self.full_hint) if isinstance(error, sqlite3.Error) else error

    def forget_proof(self) -> None:
        """Prove the state again when it is used next: its pages come from the disk anew."""
        self._proven_at = None
        self._proven_tables.clear()

    def _prove_as_opened(self) -> None:
        """Prove the state, unless it did so since another process last wrote to it."""
        (version,) = self._run("PRAGMA data_version").fetchone()
        if version != self._proven_at:
            require_format(self.connection)  # a newer release may have upgraded it
            self._is_proven_whole = verify_at_open(self.connection)
            self._proven_at = version

    def prove(self, *tables: str) -> None:
        """Prove tables of the state before something is done that cannot be undone; none: all of
        it, with its indexes. Call it inside of `reading` or `writing`.

        Raises:
            CacheDamagedError: it does not prove itself.
        """
        if self._is_proven_whole:
            return
        with self.translating():
            self._pending.write(self.connection)
            if not tables:
                verify_all(self.connection)
            for table in tables:
                verify_table(self.connection, table)

    def prove_once(self, table: str) -> None:
        """Prove a table when something of it is asked for the first time, as the answer may be that
        there is nothing. Raises: CacheDamagedError."""
        if table not in self._proven_tables:
            self.prove(table)
            self._proven_tables.add(table)

    @contextmanager
    def tentative(self, name: str) -> Iterator[None]:
        """Undo what was written inside if an exception leaves it. name: an identifier."""
        self._run(f"SAVEPOINT {name}")
        pending = self._pending.copy()
        try:
            yield
        except BaseException:
            self._forget()
            self._pending = pending
            self._triggers.undone()
            if self.connection.in_transaction:  # a full disk undoes the whole transaction
                self._run(f"ROLLBACK TO {name}")
                self._run(f"RELEASE {name}")
            raise
        self._run(f"RELEASE {name}")

    def _add_sums(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        self._pending.add(table, rows)
        if not self.connection.in_transaction:
            self._pending.write(self.connection)

    def _forget(self) -> None:
        """Forget what was read in this transaction."""

    def _undo(self) -> None:
        self._roll_back()

    def _roll_back(self) -> None:
        self._forget()
        self._pending.clear()
        if self.connection.in_transaction:
            self._run("ROLLBACK")
        self._triggers.undone()  # a full disk undid all without being told to
