"""Decoders by their definition: the only door to them. What lies behind it, Arrow and libraries
here, compiled loops later, gives the same rows and verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.config.decoders import ColumnsOf, DecoderSettings
from lakebed.decoding.decoder import Decoded, Decoder, Verdicts
from lakebed.decoding.json_values import JsonValues
from lakebed.decoding.msgpack_values import OpenMsgpack
from lakebed.decoding.python_values import Open, PythonValues
from lakebed.decoding.raw_values import RawValues
from lakebed.decoding.registered.frames import FrameOf, unframed
from lakebed.decoding.rows import RowMaker
from lakebed.decoding.text_values import TextValues, check_text
from lakebed.decoding.times import MICROS
from lakebed.decoding.values import UNKNOWN_NAMES_MAX, Indices, ReadValues, ValueReader
from lakebed.decoding.wanted import Value, Wanted, wanted_of
from lakebed.errors import InvalidError
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.schema import Schema
from lakebed.ports.schema_registry import RegisteredSchema, SchemaRegistry
from lakebed.sorted_files.format.arrow_schema import arrow_schema

BLOCK_BYTES: Final = 4 << 20
BLOCK_RECORDS: Final = 32_768
"""Most records that are parsed at once. Arrow's parser of JSON refuses more than 100,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The resources that some formats need beside their settings.

    registry: of the schemas of Avro or Protobuf.
    descriptors: of Protobuf without a registry: the bytes of the descriptor set.
    """

    registry: SchemaRegistry | None = None
    descriptors: bytes = b""


NO_RESOURCES: Final = Resources()


def decoder_of(
    settings: DecoderSettings,
    columns: ColumnsOf,
    schema: Schema,
    *,
    version: int = 1,
    resources: Resources = NO_RESOURCES,
    at: str = "connection",
) -> Decoder:
    """Return what makes rows of a table of records.

    version: of the definition, for lineage.
    at: path of the connection's section in its file, for messages.

    Raises:
        InvalidError: decoder, columns and table do not fit. It names the setting and what may be.
    """
    if settings.format == "raw":
        columns = _raw_columns(columns, schema, at)
    wanted = wanted_of(settings, columns, schema, at=at)
    reader = _reader(settings, columns, wanted, resources)
    rows = RowMaker(wanted, settings, columns, schema, version=version)
    return PlainDecoder(settings, columns, schema, reader, rows)


def check_registered(
    settings: DecoderSettings,
    columns: ColumnsOf,
    schema: Schema,
    registered: RegisteredSchema,
    *,
    at: str,
    subject_at: str,
) -> None:
    """Refuse a table that records of a registered schema do not fit. at, subject_at: paths of the
    connection's section and of the setting that names the schema, for messages.

    Raises:
        InvalidError: it has no field that a column is made of, or cannot be read by.
    """
    values = wanted_of(settings, columns, schema, at=at).values
    if settings.format == "protobuf":
        from lakebed.decoding.protobuf_values import check_registered_protobuf

        check_registered_protobuf(registered, settings.message, values, at=subject_at)
        return
    from lakebed.decoding.avro_values import check_avro_schema

    check_avro_schema(registered, [] if settings.avro_schema else values, at=subject_at)


def _raw_columns(columns: ColumnsOf, schema: Schema, at: str) -> ColumnsOf:
    """Return columns that take no values: raw records have no fields."""
    if columns.columns:
        hint = "take the whole record by `rest`, or choose another format"
        raise InvalidError("raw records have no fields", at=f"{at}.columns", hint=hint)
    if not columns.rest:
        hint = f"name the column of the record: {at}.rest = {schema.fields[-1].name!r}"
        raise InvalidError("raw records have one value, which no column takes", hint=hint)
    return columns


def _reader(
    settings: DecoderSettings, columns: ColumnsOf, wanted: Wanted, resources: Resources
) -> ValueReader:
    refuses, counts = columns.unknown != "discard_field", not columns.columns
    values = wanted.values
    match settings.format:
        case "json":
            return JsonValues(values, refuses_unknown=refuses, counts_unknown=counts)
        case "text":
            check_text(settings, values)
            return TextValues(settings, values)
        case "raw":
            return RawValues(values)
        case _:
            return PythonValues(
                values,
                _open_of(settings, values, resources),
                refuses_unknown=refuses,
                counts_unknown=counts,
            )


def _open_of(settings: DecoderSettings, values: Sequence[Value], resources: Resources) -> Open:
    """Return what opens payloads by a library, some of which are not installed everywhere."""
    if settings.format == "msgpack":
        return OpenMsgpack(values)
    try:
        if settings.format == "avro":
            from lakebed.decoding.avro_values import OpenAvro, check_avro

            check_avro(settings, values, resources.registry)
            return OpenAvro(settings, resources.registry)
        from lakebed.decoding.protobuf_values import OpenProtobuf, OpenRegisteredProtobuf

        if resources.registry is not None:
            return OpenRegisteredProtobuf(resources.registry, settings.message, values)
        has_indexes = settings.framing == "registry"
        return OpenProtobuf(
            resources.descriptors, settings.message, values, has_indexes=has_indexes
        )
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"fastavro", "google"}:
            raise
        hint = "install it: pip install 'lakebed[feeds]', or -r requirements/feeds.txt"
        raise InvalidError(f"{settings.format} needs {error.name}", hint=hint) from None


def _block_framing(settings: DecoderSettings) -> FrameOf | None:
    """Return what is taken off records before they are read; who asks a registry needs it."""
    if settings.format == "avro" or settings.framing not in {"registry", "glue"}:
        return None
    return None if settings.registry is not None else settings.framing


class PlainDecoder:
    """Decodes by Arrow and libraries, block by block."""

    def __init__(
        self,
        settings: DecoderSettings,
        columns: ColumnsOf,
        schema: Schema,
        reader: ValueReader,
        rows: RowMaker,
    ) -> None:
        self._bytes_max = settings.record_bytes_max
        self._framing = _block_framing(settings)
        self._nulls = columns.nulls
        self._schema = arrow_schema(schema)
        self._reader = reader
        self._rows = rows

    def decode(self, records: pa.RecordBatch, *, source_split: str = "") -> Decoded:
        """Return the rows of records: see `Decoder`."""
        parts = [
            self._decode(records.slice(begin, end - begin), begin, source_split)
            for begin, end in blocks_of(records.column("value"))
        ]
        return _joined(parts, self._schema)

    def _decode(self, records: pa.RecordBatch, begin: int, source_split: str) -> Decoded:
        verdicts = Verdicts.of(len(records))
        payloads = records.column("value")
        lengths = pc.binary_length(payloads).fill_null(0).to_numpy(zero_copy_only=False)
        too_large = np.flatnonzero(lengths > self._bytes_max)
        verdicts.mark_all(too_large, Verdict.TOO_LARGE, f"more than {self._bytes_max:,} bytes")
        is_empty = lengths == 0
        if is_empty.any() and self._nulls != "write":
            ignored = self._nulls == "ignore"
            verdict = Verdict.IGNORED if ignored else Verdict.NULL_IN_REQUIRED
            verdicts.mark_all(np.flatnonzero(is_empty), verdict, "the record has no value")
        if self._framing:
            payloads = unframed(payloads, self._framing, verdicts)
            records = records.set_column(records.schema.get_field_index("value"), "value", payloads)
        read = self._read(payloads, verdicts, is_empty)

        def why_null(record: int, value: int) -> Verdict:
            if is_empty[record]:
                return Verdict.NULL_IN_REQUIRED
            return self._reader.why_null(payloads[record].as_py(), value)  # bounded: a bad one

        made = self._rows.rows(
            read, records, verdicts, source_split=source_split, why_null=why_null
        )
        return Decoded(
            rows=made.rows,
            record=pa.array(made.kept + begin, pa.int64()),
            time=made.times,
            verdicts=verdicts.codes,
            details={record + begin: text for record, text in verdicts.details.items()},
            unknown=read.unknown,
            dropped=made.dropped,
        )

    def _read(
        self, payloads: pa.BinaryArray, verdicts: Verdicts, is_empty: npt.NDArray[np.bool_]
    ) -> ReadValues:
        """Return the values of payloads; those of a record without a value are null."""
        is_open = verdicts.codes == Verdict.ROW
        full = np.flatnonzero(is_open & ~is_empty)
        if len(full) == len(payloads):
            return self._reader.read(payloads, verdicts)
        inner = Verdicts.of(len(full))
        read = self._reader.read(payloads.take(pa.array(full)), inner)
        verdicts.codes[full] = inner.codes
        verdicts.details.update({int(full[i]): text for i, text in inner.details.items()})
        return _with_nulls(read, full, np.flatnonzero(is_open & is_empty))


def _with_nulls(read: ReadValues, full: Indices, empty: Indices) -> ReadValues:
    """Return values of records that have some, and nulls of those that have none, in order."""
    records = np.concatenate([full[read.records], empty])
    order = pa.array(np.argsort(records, kind="stable"))
    columns = [
        pa.concat_arrays([column, pa.nulls(len(empty), column.type)]).take(order)
        for column in read.columns
    ]
    dropped = {value: full[found] for value, found in read.dropped.items()}
    return ReadValues(np.sort(records), columns, read.unknown, dropped)


def blocks_of(payloads: pa.BinaryArray) -> Iterator[tuple[int, int]]:
    """Yield from which to below which record blocks of bounded size go. One record may be larger:
    it is a block of its own."""
    lengths = pc.binary_length(payloads).fill_null(0).to_numpy(zero_copy_only=False)
    sums = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    begin = 0
    while begin < len(payloads):
        end = int(np.searchsorted(sums, sums[begin] + BLOCK_BYTES, side="right")) - 1
        end = min(max(end, begin + 1), begin + BLOCK_RECORDS, len(payloads))
        yield begin, end
        begin = end


def _joined(parts: list[Decoded], schema: pa.Schema) -> Decoded:
    if len(parts) == 1:
        (one,) = parts
        return one
    nothing = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)
    unknown, dropped = Counter[str](), Counter[str]()
    details: dict[int, str] = {}
    for part in parts:
        unknown.update(part.unknown)
        dropped.update(part.dropped)
        details.update(part.details)
    return Decoded(
        rows=pa.concat_batches([part.rows for part in parts]) if parts else nothing,
        record=pa.concat_arrays([pa.array([], pa.int64()), *(part.record for part in parts)]),
        time=pa.concat_arrays([pa.nulls(0, MICROS), *(part.time for part in parts)]),
        verdicts=np.concatenate([np.zeros(0, np.uint8), *(part.verdicts for part in parts)]),
        details=details,
        unknown=dict(unknown.most_common(UNKNOWN_NAMES_MAX)),
        dropped=dict(dropped),
    )
