"""Snapshots: the state at a number, written down, so that the log may lose its old bodies.

A snapshot is the SQLite database, compressed, under a name that holds its number and the logical
digest of what it says. It is proven when it was read back, opened and its digest computed again;
the log is truncated only below the second newest proven one (protocol H12). zstd's own checksum
notices damage when opening.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import zstandard

from lakebed.errors import (
    CorruptError,
    ObjectExistsError,
    ObjectMissingError,
    StorageFullError,
)
from lakebed.model.names import TableId, TransactionNumber
from lakebed.model.paths import snapshot_name, snapshot_of, snapshots_prefix
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.format_gate import AskFormats, newest_formats
from lakebed.statestore.older_layouts import write_down
from lakebed.statestore.table_state.database_errors import FREE_SPACE, is_full
from lakebed.statestore.table_state.layout import require_format, upgradable_format, upgrade
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.table_state.sums import verify_rows

LOG_BYTES_MIN = 1 << 20
LOG_ENTRIES_MAX = 2_000
PIECE_BYTES, PIECES_AT_ONCE = 4 << 20, 4
SNAPSHOTS_KEPT = 2


class Snapshots:
    """The snapshots of one table. Methods that write a database raise StorageFullError when the
    disk is full.

    scratch: a local directory for temporary databases.
    formats: tells the layout in which they may be written.
    full_hint: what to do when the disk is full.
    """

    def __init__(
        self,
        table: TableId,
        objects: ObjectStore,
        *,
        scratch: Path,
        formats: AskFormats = newest_formats,
        full_hint: str = FREE_SPACE,
    ) -> None:
        self._table = table
        self._full_hint = full_hint
        self._formats = formats
        self._objects = objects
        self._scratch = scratch

    def newest_first(self) -> list[tuple[TransactionNumber, str]]:
        """Return number and path of each snapshot that the listing shows."""
        found = []
        for path in self._objects.list(snapshots_prefix(self._table)):
            parsed = snapshot_of(path)
            if parsed is not None:
                found.append((parsed[0], path))
        return sorted(found, reverse=True)

    def load_newest(self, state: TableState) -> bool:
        """Replace `state` by the newest good snapshot that is newer; False when there is none.

        A damaged snapshot is passed over.

        Raises:
            NewerFormatError: a newer Lakebed wrote it; nothing was changed.
        """
        with self._scratch_copy() as copy:
            if not self._unpack_newest(copy, above=state.head().number):
                return False
            with closing(sqlite3.connect(copy, isolation_level=None)) as source:
                source.backup(state.connection)
            state.forget_proof()
        return True

    def load(self, path: str, state: TableState) -> None:
        """Replace `state` by one snapshot.

        Raises:
            CorruptError, ObjectMissingError: it is damaged, or gone. NewerFormatError: as above.
        """
        with self._scratch_copy() as copy:
            self._unpack(path, copy)
            with closing(sqlite3.connect(copy, isolation_level=None)) as source:
                source.backup(state.connection)
            state.forget_proof()

    def begin_cache(self, path: Path) -> bool:
        """Put the newest good snapshot at `path`, as `open_cache` lets it; False: there is none.

        Raises:
            NewerFormatError: as `load_newest`.
        """
        new = path.with_name(path.name + ".new")
        with self._room():
            try:
                if not self._unpack_newest(new, above=TransactionNumber(0)):
                    return False
                with new.open("rb") as file:
                    os.fsync(file.fileno())  # or a loss of power leaves holes that read as no rows
                new.rename(path)
            finally:
                new.unlink(missing_ok=True)  # half of it would take other states' room
        return True

    def is_due(self, log: TransactionLog) -> bool:
        """Return whether the log since the newest snapshot exceeds its bounds (H13). Idle tables:
        never."""
        newest = self.newest_first()[:1]
        number = newest[0][0] if newest else TransactionNumber(0)
        size = self._objects.size_of(newest[0][1]) if newest else None
        bytes_max = max(LOG_BYTES_MIN, (size or 0) // 2)
        entries = total = 0
        for _, body in log.read_after(number):
            entries, total = entries + 1, total + len(body)
            if entries > LOG_ENTRIES_MAX or total > bytes_max:
                return True
        return False

    def write(self, state: TableState) -> TransactionNumber:
        """Put a snapshot of `state`. Again with the same state does nothing.

        Raises:
            CacheDamagedError: the state does not prove itself; nothing was written.
        """
        return self.keep(state, snapshots_prefix(self._table))

    def keep(self, state: TableState, prefix: str) -> TransactionNumber:
        """Put what is a snapshot of `state` under another prefix. Again does nothing. Raises: as
        `write`."""
        with self._scratch_copy() as copy:
            with closing(sqlite3.connect(copy, isolation_level=None)) as target:
                state.connection.backup(target)
                target.execute("PRAGMA journal_mode=DELETE")
                verify_rows(target)  # else the log would be emptied below what a disk made up
                require_format(target)
                digest, number = TableState(target).digest(), TableState(target).head().number
                write_down(target, self._formats().state)
                target.execute("PRAGMA journal_mode=OFF")  # nobody goes on with half a copy
                target.execute("VACUUM")
            path = f"{prefix}{snapshot_name(number, digest)}"
            if self._objects.size_of(path) is None:
                self._put(path, copy)
        return number

    def prove(self, path: str) -> bool:
        """Read a snapshot back, open it and compare its digest with its name."""
        parsed = snapshot_of(path)
        with self._scratch_copy() as copy:
            try:
                self._unpack(path, copy)
                with closing(sqlite3.connect(copy, isolation_level=None)) as source:
                    state = TableState(source)
                    return parsed == (state.head().number, state.digest())
            except (CorruptError, ObjectMissingError, sqlite3.DatabaseError) as error:
                if is_full(error):
                    raise
                return False

    def write_proven(self, state: TableState) -> bool:
        """Put a snapshot of `state`, in place of a damaged one, and read it back. Returns whether
        it is proven. Raises: as `write`."""
        number, digest = state.head().number, state.digest()
        path = f"{snapshots_prefix(self._table)}{snapshot_name(number, digest)}"
        if self._objects.size_of(path) is not None and not self.prove(path):
            self._objects.delete([path])
        self.write(state)
        return self.prove(path)

    def proven_end(self, *, upto: TransactionNumber | None = None) -> TransactionNumber:
        """Return the number of the second newest proven snapshot, or of an older proven one; 0:
        there is none. upto: the greatest number that is wanted."""
        proven = (number for number, path in self.newest_first() if self.prove(path))
        older = islice(proven, SNAPSHOTS_KEPT - 1, None)
        wanted = (number for number in older if upto is None or number <= upto)
        return next(wanted, TransactionNumber(0))

    def truncate(
        self,
        log: TransactionLog,
        below: TransactionNumber | None = None,
        *,
        kept: Collection[TransactionNumber] = (),
    ) -> TransactionNumber:
        """Empty the log below a number that `proven_end` gave, None: gives now. Drop snapshots that
        are older, but for those of versions that are kept.

        Returns the number below which the log was emptied; 0 when fewer than two are proven.
        """
        found = self.newest_first()
        below = self.proven_end() if below is None else below
        if below:
            log.truncate(below)
            old = (path for number, path in found if number < below and number not in kept)
            self._objects.delete(list(old))
        return below

    def _put(self, path: str, source: Path) -> None:
        writer = self._objects.create(path)
        try:
            compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)
            with source.open("rb") as file:
                for piece in compressor.read_to_iter(file, read_size=PIECE_BYTES):
                    writer.write(piece)
            writer.finish()
        except ObjectExistsError:
            pass  # an earlier try, or another process: the name holds the digest
        finally:
            writer.abort()

    def _unpack_newest(self, target: Path, *, above: TransactionNumber) -> bool:
        """Write the newest good snapshot above a number to a file; False when there is none."""
        for number, path in self.newest_first():
            if number <= above:
                return False
            try:
                self._unpack(path, target)
            except (CorruptError, ObjectMissingError):
                continue
            return True
        return False

    def _unpack(self, path: str, target: Path) -> None:
        """Write a snapshot's database to a file, in the newest format.

        Raises:
            CorruptError, ObjectMissingError: it is damaged, or gone.
            NewerFormatError: a newer Lakebed wrote it.
        """
        try:
            with target.open("wb") as file:
                decompressor = zstandard.ZstdDecompressor().decompressobj()
                for piece in self._pieces(path):
                    file.write(decompressor.decompress(piece))
            if not decompressor.eof:
                raise CorruptError("a snapshot ends too early", path=path)
            with closing(sqlite3.connect(target, isolation_level=None)) as connection:
                version = upgradable_format(connection, path)
                if version > 0:
                    connection.execute("BEGIN IMMEDIATE")
                    upgrade(connection)
                    connection.execute("COMMIT")
        except (zstandard.ZstdError, sqlite3.DatabaseError) as error:
            if is_full(error):
                raise
            raise CorruptError("a damaged snapshot", path=path, reason=error) from None
        if version < 1:
            raise CorruptError("not a snapshot", path=path, format=version)

    @contextmanager
    def _scratch_copy(self) -> Iterator[Path]:
        """Give the path for a database that is deleted at the end."""
        with self._room(), TemporaryDirectory(dir=self._scratch) as folder:
            yield Path(folder) / "state.sqlite"

    @contextmanager
    def _room(self) -> Iterator[None]:
        """Say what to do when the disk has no room for a database."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            if not is_full(error):
                raise
            problem = "no room for a copy of the state"
            raise StorageFullError(problem, table=self._table, hint=self._full_hint) from error

    def _pieces(self, path: str) -> Iterator[bytes]:
        """Yield the bytes of a snapshot, some pieces of them read at the same time."""
        size = self._objects.size_of(path)
        if size is None:
            raise ObjectMissingError(path)
        starts = range(0, size, PIECE_BYTES)
        for at in range(0, len(starts), PIECES_AT_ONCE):
            some = starts[at : at + PIECES_AT_ONCE]
            # each on its own: neighbours asked for together may come by one connection
            wanted = [(path, [(start, min(start + PIECE_BYTES, size))]) for start in some]
            for (piece,) in self._objects.read_many(wanted):
                yield piece
