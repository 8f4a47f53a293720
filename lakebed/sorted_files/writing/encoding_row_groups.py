"""Row groups become bytes: flat columns by kernels where those pay, all others by pyarrow.

Both give the same pages of the same rows, the same statistics and page indexes; pyarrow's are what
the kernels' are held to. See `parquet_bytes.encoded` for what can be done with a row group that
is bytes: row groups of any thread or file can be joined into one file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebed.model.schema import Schema
from lakebed.parquet_bytes.arrow_chunks import encode_by_arrow, template_of
from lakebed.parquet_bytes.encoded import EncodedChunk, EncodedRowGroup
from lakebed.parquet_bytes.footer import Codec, Encoding, Footer, ParquetColumn, Physical
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.writing.writer_options import (
    ZSTD_LEVEL,
    ColumnChoices,
    choose,
    page_rows,
    writer_options,
)

if TYPE_CHECKING:  # loads llvmlite
    from lakebed.parquet_bytes.chunk_metadata import ColumnEncoding

SAVING_MIN = 0.1
"""Numbers that zstd makes smaller by less than this are stored as they are: unpacking them takes as
long as reading so many bytes more from S3, and packing them still longer."""
TRIED_EVERY = 8
"""Row groups: one of so many is packed whatever its numbers are, and decides for those behind
it."""
TRIAL_ROWS_MIN = 4096
"""A smaller row group says nothing about the next: on few rows neither zstd nor dictionaries
pay."""
_NUMBERS = (Physical.INT32, Physical.INT64, Physical.FLOAT, Physical.DOUBLE)

_CODEC_NAMES = {Codec.ZSTD: "zstd", Codec.UNCOMPRESSED: "none"}


class RowGroupEncoder:
    """Encodes row groups, one after the other, of one file or of several. Not for two threads.

    The rows of the first one that has many decide how columns are written. compiled: whether
    kernels are used. columns: that they have, in their order; None: all of the schema.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        compiled: bool,
        value_statistics: bool = False,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._schema = schema
        self._arrow = _arrow_columns(schema, columns)
        self._compiled = compiled
        self._value_statistics = value_statistics
        self.template = template_for(schema, columns)
        """A footer of no row groups, for files of these."""
        self._columns = self.template.columns
        self._codecs = [Codec.ZSTD] * len(self._columns)
        self._is_chosen = False
        self._until_tried = 0
        self.kernels: _Kernels | None = None

    def close(self) -> None:
        """Say that all row groups that were returned are written."""
        if self.kernels is not None:
            self.kernels.close()

    def encode(self, rows: pa.Table, row_bytes: int) -> EncodedRowGroup:
        """Return a row group, which is there until the next is encoded. row_bytes: of a row in
        memory, where rows are widest."""
        if not self._is_chosen:
            self._choose(rows)
        count = page_rows(row_bytes)
        columns = self._columns
        is_tried = not self._until_tried
        if is_tried:
            self._codecs = [Codec.ZSTD] * len(columns)
        found: dict[int, EncodedChunk] = {}
        if self.kernels is not None:
            self.kernels.forget()
            for index, column in enumerate(columns):
                chunk = self.kernels.encode(column.path[0], rows, count, self._codecs[index])
                if chunk is not None:
                    found[index] = chunk
        rest = [index for index in range(len(columns)) if index not in found]
        if rest:
            names = list(dict.fromkeys(columns[index].path[0] for index in rest))
            codecs = {_path(columns[index]): _CODEC_NAMES[self._codecs[index]] for index in rest}
            options = writer_options(self._choices, names, count, codecs)
            chunks = encode_by_arrow(rows.select(names), options)
            found.update(zip(rest, chunks, strict=True))
        row_group = EncodedRowGroup(len(rows), [found[index] for index in range(len(columns))])
        if not is_tried:
            self._until_tried -= 1
        elif len(rows) >= TRIAL_ROWS_MIN:
            self._until_tried = TRIED_EVERY - 1
            self._choose_codecs(row_group)
        return row_group

    def _choose(self, first: pa.Table) -> None:
        choices = choose(self._schema, first, value_statistics=self._value_statistics)
        self._choices, self._is_chosen = choices, len(first) >= TRIAL_ROWS_MIN
        self.close()
        if self._compiled:
            self.kernels = _Kernels(self._arrow, choices, sorted_by=self._schema.row_keys[0].name)

    def _choose_codecs(self, packed: EncodedRowGroup) -> None:
        for index, (column, chunk) in enumerate(zip(self._columns, packed.chunks, strict=True)):
            saved = chunk.bytes_count - chunk.size
            if column.physical in _NUMBERS and saved < SAVING_MIN * chunk.bytes_count:
                self._codecs[index] = Codec.UNCOMPRESSED


def template_for(schema: Schema, columns: Sequence[str] | None = None) -> Footer:
    """Return a footer for a file of row groups of this schema. columns: that they have; None:
    all."""
    there = _arrow_columns(schema, columns)
    choices = choose(schema, there.empty_table())
    return template_of(there, writer_options(choices, there.names, 1, {}))


def _arrow_columns(schema: Schema, columns: Sequence[str] | None) -> pa.Schema:
    whole = arrow_schema(schema)
    return whole if columns is None else pa.schema([whole.field(name) for name in columns])


class _Kernels:
    """Encodes the columns that kernels know. sorted_by: the column by which rows are sorted, before
    any other."""

    def __init__(self, columns: pa.Schema, choices: ColumnChoices, *, sorted_by: str) -> None:
        from lakebed.kernels import encoding as kernels  # noqa: PLC0415  loads llvmlite
        from lakebed.parquet_bytes.chunk_metadata import (  # noqa: PLC0415  loads llvmlite
            ColumnEncoding,
        )
        from lakebed.parquet_bytes.column_encoding import (  # noqa: PLC0415  loads llvmlite
            ColumnEncoder,
            can_encode,
        )

        self._encoder = ColumnEncoder(zstd_level=ZSTD_LEVEL)
        self._columns: dict[str, ColumnEncoding] = {}
        for column in columns:
            name = column.name
            encoding = Encoding[choices.encodings.get(name, "PLAIN")]
            is_value = name not in choices.keys
            if name in choices.dictionaries:
                encoding = Encoding.RLE_DICTIONARY
            if not can_encode(column.type, encoding):
                continue
            if is_value and name in choices.bounded:
                continue  # kernels know bounds of keys, which are never null
            bounds = kernels.UNBOUNDED if is_value else kernels.UNSORTED
            bounds = kernels.SORTED if name == sorted_by else bounds
            self._columns[name] = ColumnEncoding(
                name, column.type, column.nullable, encoding, bounds
            )

    def forget(self) -> None:
        """Let the next chunks overwrite those that were returned."""
        self._encoder.forget()

    def close(self) -> None:
        """Let other encoders have the memory."""
        self._encoder.close()

    def encode(
        self, name: str, rows: pa.Table, page_rows_: int, codec: Codec
    ) -> EncodedChunk | None:
        """Return a column's chunk, None if it is for pyarrow."""
        column = self._columns.get(name)
        if column is None:
            return None
        return self._encoder.encode(column, codec, rows.column(name).chunks, page_rows_)


def _path(column: ParquetColumn) -> str:
    return ".".join(column.path)
