"""Keeps what a merge needs of the files that it has open: few whole tails, of the others summaries.

A summary has the keys at which row groups begin, and where in the tail each is described. That is
read again when the merge gets there, and compared with checksums that were taken when the tail was
read and verified as a whole.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.errors import CorruptError
from lakebed.model.files import FilePart, StoredFile
from lakebed.model.samples import Sample
from lakebed.parquet_bytes.footer import Footer, RowGroup
from lakebed.parquet_bytes.single_row_groups import (
    FooterTemplate,
    footer_template_of,
    offset_indexes,
)
from lakebed.parquet_bytes.thrift import MalformedError, Reader, Struct
from lakebed.ports.object_store import ObjectReader
from lakebed.sorted_files.format.file_notes import NAMES, RowGroupNote
from lakebed.sorted_files.reading.tails import PARSED_PER_BYTE, Described, Tail, parsed

PIECE_BYTES = 4096
"""Bytes of a piece of a tail; each piece has a checksum of its own."""
SAMPLE_FRACTION = 8
"""Number of keys in a file's sample of which a summary keeps one."""
TOGETHER_BYTES = 8 << 20
"""Bytes of tails that are read at the same time."""


class _Alike(msgspec.Struct, frozen=True):
    """The parts that files of one table have in common."""

    template: FooterTemplate
    columns: pa.Schema


class FileSummary(msgspec.Struct, frozen=True, eq=False):
    """A file whose tail is not kept.

    rows: of each row group.
    row_group_offsets: where each is described in the tail, and where the last ends.
    checksums: of each PIECE_BYTES of the tail.
    sample: few keys of it.
    """

    objects: ObjectReader
    part: FilePart
    alike: _Alike
    row_groups: tuple[RowGroupNote, ...]
    last: bytes
    blocks: array[int]
    rows: array[int]
    row_group_offsets: array[int]
    checksums: array[int]
    sample: Sample

    @property
    def columns(self) -> pa.Schema:
        return self.alike.columns

    @property
    def firsts(self) -> Sequence[bytes]:
        return [row_group.first for row_group in self.row_groups]

    def rows_of(self, row_group: int) -> int:
        return self.rows[row_group]

    def metadata_of(self, row_group: int) -> tuple[pq.FileMetaData, int]:
        file = self.alike.template.alone(self._fields(row_group))
        return pq.read_metadata(pa.BufferReader(file)), 0

    def row_group_of(self, row_group: int) -> tuple[Footer, RowGroup]:
        fields = self._fields(row_group)
        found = offset_indexes(fields)
        if found is None:
            raise MalformedError("no page index")
        tail_offset = self.part.file.tail_offset
        if found[0] < tail_offset or found[1] > tail_offset + self.row_group_offsets[0]:
            raise MalformedError("a page index does not lie in its file's tail")
        index = self._bytes(found[0] - tail_offset, found[1] - tail_offset)
        return self.alike.template.opened(fields, index, found[0])

    def _fields(self, row_group: int) -> Struct:
        return Reader(
            self._bytes(self.row_group_offsets[row_group], self.row_group_offsets[row_group + 1])
        ).struct()

    def _bytes(self, start: int, end: int) -> bytes:
        """Read some of the tail again."""
        file, path = self.part.file, self.part.path
        first, behind = start // PIECE_BYTES, -(-end // PIECE_BYTES)
        begin = file.tail_offset + first * PIECE_BYTES
        stop = min(file.tail_offset + behind * PIECE_BYTES, file.size)
        (raw,) = self.objects.read(path, [(begin, stop)])
        if _checksums(raw) != self.checksums[first:behind]:
            raise CorruptError("a file's tail contradicts its checksum", path=path)
        at = start - first * PIECE_BYTES
        return raw[at : at + end - start]


class FileSummaries:
    """The files of one merge. whole_bytes_max: of tails that are kept, as they are counted."""

    def __init__(self, objects: ObjectReader, *, whole_bytes_max: int) -> None:
        self._objects = objects
        self._room = whole_bytes_max
        self._found: dict[StoredFile, Tail | FileSummary] = {}
        self._alike: dict[FooterTemplate, _Alike] = {}

    def of(self, part: FilePart) -> Described:
        """Return what is known of a file.

        Raises:
            ObjectMissingError: the file is not there.
            CorruptError: the tail contradicts its checksum, or is none.
        """
        self.read([part])
        return self._found[part.file]

    def whole(self, part: FilePart) -> Tail:
        """Return a file's whole tail. Raises: as `of`."""
        found = self._found.get(part.file)
        if isinstance(found, Tail):
            return found
        ((_, raw),) = self._tails([part])
        return parsed(part, raw)

    def read(self, parts: Sequence[FilePart]) -> None:
        """Get to know files, many with one round. Raises: as `of`."""
        missing = {part.file: part for part in parts if part.file not in self._found}
        for part, raw in self._tails(list(missing.values())):
            tail = parsed(part, raw)
            size = PARSED_PER_BYTE * len(raw)
            if size <= self._room:
                self._room -= size
                self._found[part.file] = tail
            else:
                self._found[part.file] = self._summary(part, tail)

    def _tails(self, parts: Sequence[FilePart]) -> Iterator[tuple[FilePart, bytes]]:
        together: list[FilePart] = []
        size = 0
        for index, part in enumerate(parts):
            together.append(part)
            size += part.file.size - part.file.tail_offset
            if size < TOGETHER_BYTES and index + 1 < len(parts):
                continue
            asked = [(one.path, [(one.file.tail_offset, one.file.size)]) for one in together]
            for one, (raw,) in zip(together, self._objects.read_many(asked), strict=True):
                yield one, raw
            together, size = [], 0

    def _summary(self, part: FilePart, tail: Tail) -> FileSummary:
        try:
            template = footer_template_of(tail.footer, without=NAMES)
        except MalformedError as error:
            problem = str(error)
            raise CorruptError("a file has no footer", path=part.path, problem=problem) from error
        count = len(tail.row_groups)
        return FileSummary(
            objects=self._objects,
            part=part,
            alike=self._alike.setdefault(template, _Alike(template, tail.columns)),
            row_groups=tail.notes.row_groups,
            last=tail.last,
            blocks=array("I", tail.blocks),
            rows=array("I", map(tail.rows_of, range(count))),
            row_group_offsets=array("I", tail.footer.row_group_offsets),
            checksums=_checksums(tail.raw),
            sample=tail.sample.thinned(SAMPLE_FRACTION),
        )


def _checksums(raw: bytes) -> array[int]:
    pieces = range(0, len(raw), PIECE_BYTES)
    return array("I", (zlib.crc32(raw[at : at + PIECE_BYTES]) for at in pieces))
