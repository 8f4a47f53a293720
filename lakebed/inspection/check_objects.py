"""Checks whether a table's objects are what its state says: each file there and whole, nothing
beside."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lakebed.errors import CorruptError, ObjectMissingError
from lakebed.inspection.findings import Fact, Finding, finding
from lakebed.inspection.unreadable import UNREADABLE, problem_of
from lakebed.model.files import FilePart, FileReference, KeyBounds, StoredFile
from lakebed.model.names import FileName, TableId, TableName, TransactionNumber, base_of
from lakebed.model.partitions import PartitionTree
from lakebed.model.paths import (
    base_of_commits,
    base_of_run,
    commits_prefix,
    file_of,
    file_path,
    runs_prefix,
    snapshot_of,
    snapshots_prefix,
    table_prefix,
)
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Schema
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.sorted_files import RowsWritten, SortedFiles
from lakebed.statestore.table_state.state import TableState

Progress = Callable[[str, int, int], None]
"""A function of what is done, how many are, and of how many."""


class Known(msgspec.Struct, frozen=True):
    """The facts that a state holds of a table's files."""

    schema: Schema
    tree: PartitionTree
    references: Mapping[FileName, Sequence[FileReference]]
    garbage: frozenset[FileName]
    floor: int


def known_of(state: TableState) -> Known:
    """Return what a state says of files. Its tree was found whole."""
    references: dict[FileName, list[FileReference]] = {}
    for reference in state.all_references():
        references.setdefault(reference.file.name, []).append(reference)
    garbage = frozenset(g.file for g in state.garbage())
    return Known(state.schema(), state.tree(), references, garbage, state.head().floor)


class CheckObjects:
    """Checks the objects of one table. deep: reads every byte and row; else the tails only."""

    def __init__(
        self,
        *,
        objects: ObjectStore,
        files: SortedFiles[Any],
        table: TableId,
        name: TableName,
        deep: bool,
        on_progress: Progress,
    ) -> None:
        self._objects = objects
        self._files = files
        self._table = table
        self._name = name
        self._deep = deep
        self._on_progress = on_progress

    def run(self, known: Known) -> Iterator[Finding]:
        """Yield what is wrong with referenced files, then what lies beside them."""
        total = len(known.references)
        for done, (file, references) in enumerate(sorted(known.references.items()), start=1):
            yield from self._check_file(known, file, references)
            self._on_progress(self._name, done, total)
        yield from self._beside(known)

    def _check_file(
        self, known: Known, file: FileName, references: Sequence[FileReference]
    ) -> Iterator[Finding]:
        path = file_path(self._table, file)
        stored = references[0].file
        try:
            problem = self._bytes_problem(path, stored)
            if problem is None:
                part = FilePart(stored, path, EVERYTHING, 0)
                self._files.sample(known.schema, part)
                if self._deep:
                    yield from self._check_rows(known, part, references)
        except ObjectMissingError:
            yield self._finding("file-missing", path=path, references=len(references))
            return
        except CorruptError as error:
            problem = str(error)
            code = "file-unsorted" if "row" in error.message else "file-damaged"
            yield self._finding(code, path=path, problem=error.message)
            return
        except UNREADABLE as error:
            yield self._finding("file-unreadable", path=path, problem=problem_of(error))
            return
        if problem is not None:
            yield self._finding("file-damaged", path=path, problem=problem)

    def _bytes_problem(self, path: str, file: StoredFile) -> str | None:
        """Return how the stored bytes contradict the reference."""
        if self._deep:
            facts = self._objects.look(path)
            if facts is None:
                raise ObjectMissingError(path)
            if facts.size != file.size:
                return f"it has {facts.size} bytes, not {file.size}"
            if facts.checksum != file.checksum:
                return "its CRC-64 is another"
        (tail,) = self._objects.read(path, [(file.tail_offset, file.size)])
        if zlib.crc32(tail) != file.tail_checksum:
            return "its tail contradicts its checksum"
        return None

    def _check_rows(
        self, known: Known, part: FilePart, references: Sequence[FileReference]
    ) -> Iterator[Finding]:
        key_ranges = {r.partition: known.tree.key_range(r.partition) for r in references}
        tiles = tiling(list(key_ranges.values()))
        measured = self._files.measure(known.schema, part, tiles)
        held = dict(zip(tiles, measured, strict=True))
        for reference in references:
            rows = held[key_ranges[reference.partition]]
            yield from self._compare(part.path, reference, rows)

    def _compare(
        self, path: str, reference: FileReference, held: RowsWritten | None
    ) -> Iterator[Finding]:
        count = held.rows if held else 0
        if reference.exact and count != reference.rows:
            yield self._finding(
                "rows-differ",
                path=path,
                partition=reference.partition,
                held=count,
                stated=reference.rows,
            )
        if held is not None and not _inside(held.bounds, reference.bounds):
            yield self._finding("bounds-differ", path=path, partition=reference.partition)

    def _beside(self, known: Known) -> Iterator[Finding]:
        snapshots, commits = snapshots_prefix(self._table), commits_prefix(self._table)
        runs = runs_prefix(self._table)
        for path in self._objects.list(table_prefix(self._table)):
            file = file_of(path)
            if path.startswith(snapshots) and snapshot_of(path) is not None:
                continue  # the replay has looked at it
            on_the_way = base_of_commits(path) if path.startswith(commits) else None
            on_the_way = base_of_run(path) if path.startswith(runs) else on_the_way
            if on_the_way is not None:
                yield self._finding(_unknown(on_the_way, known), path=path)
            elif file is None or path != file_path(self._table, file):
                yield self._finding("object-stray", path=path)
            elif file not in known.references and file not in known.garbage:
                yield self._finding(_unknown(base_of(file), known), path=path)

    def _finding(self, code: str, **facts: Fact) -> Finding:
        return finding(code, table=self._name, **facts)


def _unknown(base: TransactionNumber, known: Known) -> str:
    """Return the finding for an object that the state does not know."""
    return "object-unreferenced" if base < known.floor else "object-pending"


def tiling(key_ranges: Sequence[KeyRange]) -> list[KeyRange]:
    """Return these key ranges, which do not overlap, and what lies between them, ascending."""
    tiles: list[KeyRange] = []
    end: bytes | None = b""
    for key_range in sorted(key_ranges, key=lambda r: r.min):
        assert end is not None, "only the last key range is unbounded"
        if end < key_range.min:
            tiles.append(KeyRange(end, key_range.min))
        tiles.append(key_range)
        end = key_range.max
    return tiles if end is None else [*tiles, KeyRange(end, None)]


def _inside(inner: KeyBounds, outer: KeyBounds) -> bool:
    if inner.min < outer.min:
        return False
    return outer.max is None or (inner.max is not None and inner.max <= outer.max)
