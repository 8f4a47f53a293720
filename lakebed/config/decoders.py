"""Checks how a feed's records are read, and which of their values become which columns: the section
`decoder` of a feed, and what a connection says of its columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from lakebed.config.definitions.decoder_registries import Framing, RegistryOf, framing_of
from lakebed.errors import InvalidError, did_you_mean

Format = Literal["json", "text", "raw", "msgpack", "avro", "protobuf"]
Nulls = Literal["write", "ignore", "fail"]
OfRecord = Literal["key", "headers", "time"]
UnknownFields = Literal["discard_field", "discard_record", "quarantine", "freeze"]
Path = tuple[str, ...]
"""Names of fields, from the outermost to that of the value."""

UNITS = ("s", "ms", "us", "ns")
WAYS_OF_TIMES = (*UNITS, "auto", "iso")
"""Names of the ways to write a time, besides patterns of strptime's letters."""
PATH_LEVELS_MAX = 16
RECORD_BYTES_MAX = 16 << 20

StructT = TypeVar("StructT", bound=msgspec.Struct)

_SEPARATOR = re.compile(r"(?<!\\)\.")
_LETTERS = frozenset("YymdjBbHIMSfpzZAaTF%")


class TimeOf(msgspec.Struct, frozen=True, kw_only=True):
    """The time of an event.

    path: of the value; empty: the time that the source gives the record.
    as_: in the file `as`. `s`, `ms`, `us`, `ns`: a number since 1970. `auto`: one of them, by its
        size, between 2000 and 2100. `iso`: ISO 8601. All else is a pattern of strptime's letters.
    zone: of texts without an offset. Empty: such a text is no time.
    """

    path: str = ""
    as_: Annotated[str, Meta(min_length=1, max_length=100)] = msgspec.field(
        name="as", default="auto"
    )
    zone: str = ""


class DecoderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a decoder, by which records are read.

    format: of their bytes.
    time: the time of their events. Left out: records have none.
    record_bytes_max: a larger record is not read (`too-large`).
    fields: of `text`: names of the fields of a line, in order.
    delimiter, quote: of `text`: one character each; an empty quote: there is none.
    null: of `text`: the text that stands for null.
    framing: what stands in front of a record. `registry`: a zero byte and a schema's id, as
        Confluent's serializers write it. `glue`: as those of AWS Glue do. Of `avro` also
        `container` (each record is a file with its schema) and `datum` (`avro_schema` alone says
        what it is). Left out: of `avro` that of its registry; of `json` and `protobuf` nothing.
    registry: of the schemas of `avro` or `protobuf`. A text is its `url`.
    avro_schema: JSON text; the schema that rows are read by, or of each datum.
    descriptors: of `protobuf`: path of a descriptor set, as `protoc --descriptor_set_out
        --include_imports` writes it: a file of the machine that runs the feed, or s3://BUCKET/KEY.
        Where `registry` is given, there is none.
    message: of `protobuf`: full name of the message. With `registry` it may be left out: then
        records may be of any message.
    """

    format: Format
    time: TimeOf | None = None
    record_bytes_max: Annotated[int, Meta(ge=1, le=64 << 20)] = RECORD_BYTES_MAX
    fields: tuple[str, ...] = ()
    delimiter: Annotated[str, Meta(min_length=1, max_length=1)] = ","
    quote: Annotated[str, Meta(max_length=1)] = '"'
    null: str = ""
    framing: Framing = ""
    registry: RegistryOf | None = None
    avro_schema: str = ""
    descriptors: str = ""
    message: str = ""


class ColumnOf(msgspec.Struct, frozen=True, kw_only=True):
    """The value of a column, where more than its path must be said.

    as_, zone: of a time, as in a decoder's `time`.
    """

    path: Annotated[str, Meta(min_length=1)]
    as_: Annotated[str, Meta(min_length=1, max_length=100)] = msgspec.field(
        name="as", default="iso"
    )
    zone: str = ""


class ColumnsOf(msgspec.Struct, frozen=True, kw_only=True):
    """The mapping of a record's values to the columns of a table.

    columns: path of the value by column; of all columns but those of `rest`, `lineage`, `meta` and
        `auto_key`.
        Left out: a column has the value of its name.
    rest: the column that has the whole record, as text or bytes.
    lineage: whether the columns `_split`, `_position` and `_version` say where the row is from.
    meta: which of the columns `_key`, `_headers` and `_time` the record itself gives.
    auto_key: the column that has an id of the record, made of feed, source split and position.
    feed: what stands for the feed in such an id.
    nulls: of a record without a value, as a tombstone: `write` a row of nulls, `ignore` or `fail`.
    unknown: of a value that no column takes, where `columns` is left out: it is left out and
        counted (`discard_field`), or the record is no row (`unknown-field`).
    types: of a value that its column cannot hold: where the column may be null, it is null and the
        value is counted (`discard_field`), or the record is no row (`type-mismatch`).
    known: values that no column takes and that are known all the same, as what they are read by
        path. No file says it: a route does.
    """

    columns: dict[str, str | ColumnOf] = {}
    rest: str = ""
    lineage: bool = False
    meta: tuple[OfRecord, ...] = ()
    auto_key: str = ""
    feed: str = ""
    nulls: Nulls = "write"
    unknown: UnknownFields = "discard_field"
    types: UnknownFields = "quarantine"
    known: dict[str, Literal["string", "int64"]] = {}


def decoder_settings_of(said: object, *, at: str) -> DecoderSettings:
    """Return the decoder that a file says. at: path of the section, for messages.

    Raises:
        InvalidError: it says what there is not. It names the field, and the nearest.
    """
    fields = _section(said, at)
    _check_names(fields, DecoderSettings, at)
    time = fields.get("time")
    if isinstance(time, str):  # `time = "record"`, or a path
        fields = {**fields, "time": {} if time == "record" else {"path": time}}
    elif isinstance(time, Mapping):
        _check_names(time, TimeOf, f"{at}.time")
    registry = fields.get("registry")
    if isinstance(registry, str):
        fields = {**fields, "registry": {"url": registry}}
    elif isinstance(registry, Mapping):
        _check_names(registry, RegistryOf, f"{at}.registry")
    settings = _converted(fields, DecoderSettings, at)
    if settings.time is not None:
        check_way_of_time(settings.time.as_, at=f"{at}.time.as")
    framing = framing_of(settings.format, settings.framing, settings.registry, at=at)
    if settings.registry is not None and settings.descriptors:
        hint = "leave one of them out"
        raise InvalidError(
            "schemas from a registry, and from a file", at=f"{at}.descriptors", hint=hint
        )
    return msgspec.structs.replace(settings, framing=framing)


def columns_of(said: object, *, at: str) -> ColumnsOf:
    """Return what a connection says of its columns. Raises: as `decoder_settings_of`."""
    fields = _section(said, at)
    _check_names(fields, ColumnsOf, at)
    columns = fields.get("columns", {})
    if isinstance(columns, Mapping):
        for name, value in columns.items():
            if isinstance(value, Mapping):
                _check_names(value, ColumnOf, f"{at}.columns.{name}")
    found = _converted(fields, ColumnsOf, at)
    for name, value in found.columns.items():
        if isinstance(value, ColumnOf):
            check_way_of_time(value.as_, at=f"{at}.columns.{name}.as")
        path_of(value if isinstance(value, str) else value.path, at=f"{at}.columns.{name}")
    return found


def path_of(text: str, *, at: str) -> Path:
    r"""Return the names of a path: `a.b.c`. A dot inside of a name is written `\.`.

    Raises:
        InvalidError: a name is empty, or there are too many.
    """
    names = tuple(part.replace("\\.", ".") for part in _SEPARATOR.split(text))
    if not all(names) or len(names) > PATH_LEVELS_MAX:
        hint = f"write up to {PATH_LEVELS_MAX} names with dots between them, as in `meta.ts`"
        raise InvalidError("not a path of a value", at=at, path=text[:200], hint=hint)
    return names


def check_way_of_time(way: str, *, at: str) -> None:
    """Refuse what is neither a known way to write times nor a pattern. Raises: InvalidError."""
    if way in WAYS_OF_TIMES:
        return
    if "%" not in way:
        hint = did_you_mean(way, WAYS_OF_TIMES, what="way")
        raise InvalidError(
            "no such way to write a time", at=at, got=way, hint=f"{hint}; or write a pattern"
        )
    for letter in re.findall(r"%(.?)", way, re.DOTALL):
        if letter not in _LETTERS:
            known = " ".join(f"%{known}" for known in sorted(_LETTERS))
            raise InvalidError(
                "an unknown letter in a pattern of a time",
                at=at,
                got=f"%{letter}",
                hint=f"use {known}",
            )


def _section(said: object, at: str) -> Mapping[str, Any]:
    if not isinstance(said, Mapping):
        hint = f"write {at} = {{ ... }}"
        raise InvalidError(
            "a value is given to a section", at=at, got=type(said).__name__, hint=hint
        )
    return said


def _names_of(form: type[msgspec.Struct]) -> Sequence[str]:
    return form.__struct_encode_fields__


def _check_names(fields: Mapping[str, Any], form: type[msgspec.Struct], at: str) -> None:
    names = _names_of(form)
    for name in fields:
        if name not in names:
            hint = did_you_mean(str(name), names, what="setting")
            raise InvalidError("an unknown setting of a feed", at=f"{at}.{name}", hint=hint)


def _converted(fields: Mapping[str, Any], form: type[StructT], at: str) -> StructT:
    try:
        return msgspec.convert(dict(fields), form)
    except msgspec.ValidationError as error:
        raise InvalidError(
            "a feed has a value that is not allowed",
            at=at,
            problem=error,
            hint="give what the problem asks for",
        ) from None
