"""Tails of files: footer and page index, read with one request and kept by file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from typing import Protocol

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.errors import CorruptError
from lakebed.model.files import FilePart, StoredFile
from lakebed.model.samples import Sample
from lakebed.parquet_bytes import footer as parquet
from lakebed.parquet_bytes.footer import Footer
from lakebed.ports.object_store import ObjectReader
from lakebed.ports.sorted_files import ReadFigures
from lakebed.sorted_files.format.file_notes import Notes, RowGroupNote, decode_notes, verify_tail
from lakebed.sorted_files.reading.byte_cache import ByteCache

PARSED_PER_BYTE = 4
"""Memory that a parsed tail is counted with, per byte of it."""


HELD_MAX = 8
"""Files that stand for all that are held."""


class Described(Protocol):
    """The description of a file that is read row group by row group: all of its tail, or less.

    groups, last, blocks, sample: as in its notes, or a part of the sample. firsts: the first key of
    each row group.
    """

    @property
    def columns(self) -> pa.Schema: ...
    @property
    def row_groups(self) -> Sequence[RowGroupNote]: ...
    @property
    def firsts(self) -> Sequence[bytes]: ...
    @property
    def last(self) -> bytes: ...
    @property
    def blocks(self) -> Sequence[int]: ...
    @property
    def sample(self) -> Sample: ...

    def rows_of(self, row_group: int) -> int:
        """Return how many rows a row group has."""
        ...

    def metadata_of(self, row_group: int) -> tuple[pq.FileMetaData, int]:
        """Return metadata that describes a row group, and its index in them."""
        ...

    def row_group_of(self, row_group: int) -> tuple[Footer, parquet.RowGroup]:
        """Return a row group, and the footer that its page index is found by.

        Raises:
            MalformedError: it contradicts the columns, or does not lie in the file.
        """
        ...


class Tail(msgspec.Struct, frozen=True, dict=True):
    """A verified tail, parsed."""

    raw: bytes
    tail_offset: int
    metadata: pq.FileMetaData
    columns: pa.Schema
    notes: Notes

    @property
    def row_groups(self) -> Sequence[RowGroupNote]:
        return self.notes.row_groups

    @property
    def last(self) -> bytes:
        return self.notes.last

    @property
    def blocks(self) -> Sequence[int]:
        return self.notes.blocks

    @property
    def sample(self) -> Sample:
        return self.notes.sample

    @cached_property
    def firsts(self) -> Sequence[bytes]:
        return [row_group.first for row_group in self.row_groups]

    @cached_property
    def footer(self) -> Footer:
        """Return the footer, without its row groups. Raises: MalformedError, where it is none."""
        return Footer(self.raw, self.tail_offset)

    def rows_of(self, row_group: int) -> int:
        return int(self.metadata.row_group(row_group).num_rows)

    def metadata_of(self, row_group: int) -> tuple[pq.FileMetaData, int]:
        return self.metadata, row_group

    def row_group_of(self, row_group: int) -> tuple[Footer, parquet.RowGroup]:
        return self.footer, self.footer.row_group(row_group)


class Tails:
    """A cache of tails, bounded by bytes. Files never change, so nothing in it grows old."""

    def __init__(self, objects: ObjectReader, *, bytes_max: int) -> None:
        self._objects = objects
        self.bytes_at_once = bytes_max // (2 * PARSED_PER_BYTE)
        """How many, as they are stored, can be read together without the last driving out the
        first."""
        self._held: ByteCache[StoredFile, Tail] = ByteCache(bytes_max)

    def of(self, part: FilePart) -> Tail:
        """Return the tail of a file.

        Raises:
            ObjectMissingError: the file is not there.
            CorruptError: the tail contradicts its checksum, or is none.
        """
        return self.of_many([part], ReadFigures())[0]

    def held(self, parts: Sequence[FilePart]) -> list[FilePart]:
        """Return some of the files whose tails are held, if any."""
        some = (part for part in parts if self._held.get(part.file) is not None)
        return list(islice(some, HELD_MAX))

    def of_many(self, parts: Sequence[FilePart], figures: ReadFigures) -> list[Tail]:
        """Return the tails of several files. Those that are not held are read at the same time.

        Raises:
            As `of`.
        """
        held = ((part.file, self._held.get(part.file)) for part in parts)
        found = {file: tail for file, tail in held if tail is not None}
        missing = {part.file: part for part in parts if part.file not in found}
        figures.tails += len(parts)
        figures.tails_cached += sum(part.file not in missing for part in parts)
        if missing:
            wanted = [(p.path, [(f.tail_offset, f.size)]) for f, p in missing.items()]
            figures.asked(len(wanted), sum(f.size - f.tail_offset for f in missing))
            with figures.timed("tails"):
                answers = self._objects.read_many(wanted)
                for (file, part), (raw,) in zip(missing.items(), answers, strict=True):
                    tail = found[file] = parsed(part, raw)
                    self._held.put(file, tail, PARSED_PER_BYTE * len(raw))
        return [found[part.file] for part in parts]


def parsed(part: FilePart, raw: bytes) -> Tail:
    """Return the tail of a file. raw: its bytes.

    Raises:
        CorruptError: they contradict their checksum, or are none.
    """
    verify_tail(part, raw)
    try:
        metadata = pq.read_metadata(pa.BufferReader(_footer(raw)))
        columns = metadata.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        problem = str(error)
        raise CorruptError("a file has no footer", path=part.path, problem=problem) from error
    notes = decode_notes(metadata.metadata, part.path)
    if len(notes.row_groups) != metadata.num_row_groups:
        raise CorruptError("a file's notes do not fit its row groups", path=part.path)
    return Tail(raw, part.file.tail_offset, metadata, columns, notes)


def _footer(raw: bytes) -> bytes:
    """Return a file that is nothing but the footer: all that Arrow looks at to parse it."""
    size = int.from_bytes(raw[-8:-4], "little") + 8
    return b"PAR1" + raw[-min(size, len(raw)) :]
