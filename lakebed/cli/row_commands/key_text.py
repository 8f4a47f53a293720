"""Keys, ranges, split points and settings as people type them."""

from __future__ import annotations

import base64
import binascii
import csv
import io
import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path

from lakebed.errors import InvalidError, UnreadableInputError
from lakebed.model.json_fields import fields_once
from lakebed.model.keys import KeyValue, key_value_from_text, key_value_text
from lakebed.model.processing import Processing, processing_from_json
from lakebed.model.ranges import Range
from lakebed.model.schema import Field, Schema, schema_of

KEY_HINT = "--key VALUE, --key VALUE,VALUE or --key FIELD=VALUE,FIELD=VALUE"
RANGE_HINT = "--range FIELD=MIN..MAX, where an empty end is unbounded"


def key_from_text(schema: Schema, text: str) -> dict[str, KeyValue]:
    """Return the values by field of a key: `UA,1545`, or by name: `carrier=UA,flight=1545`.

    A table with one row key takes the whole text as its value, commas too.

    Raises:
        InvalidError: an unknown field, more values than row keys, a wrong type.
    """
    names = "|".join(re.escape(field.name) for field in schema.fields)
    if re.match(rf"(?:{names})=", text):
        pairs = [part.split("=", 1) for part in re.split(rf",(?=(?:{names})=)", text)]
        named = [(schema.row_keys[schema.dimension_of(name)], value) for name, value in pairs]
    else:
        values = [text] if len(schema.row_keys) == 1 else next(csv.reader([text]), [])
        if not 0 < len(values) <= len(schema.row_keys):
            fields = ", ".join(field.name for field in schema.row_keys)
            raise InvalidError(
                "a key has one value per row key", key=text, row_keys=fields, hint=KEY_HINT
            )
        named = list(zip(schema.row_keys, values, strict=False))
    return {field.name: key_value_from_text(field, value) for field, value in named}


def ranges_from_text(schema: Schema, texts: Sequence[str]) -> list[dict[str, Range]]:
    """Return boxes: ranges of one field are alternatives, ranges of several must all hold.

    Raises:
        InvalidError: not of the form, an unknown field, a wrong type.
    """
    by_field: dict[str, list[Range]] = {}
    for text in texts:
        name, equals, ends = text.partition("=")
        least, dots, most = ends.partition("..")
        if not equals or not dots or ".." in most:
            raise InvalidError("the text is not a range", range=text, hint=RANGE_HINT)
        field = schema.row_keys[schema.dimension_of(name)]
        first, last = (key_value_from_text(field, end) if end else None for end in (least, most))
        by_field.setdefault(name, []).append(Range(first, last))
    return [dict(zip(by_field, box, strict=True)) for box in itertools.product(*by_field.values())]


SplitPoint = KeyValue | tuple[KeyValue, ...]


def split_point_from_text(schema: Schema, text: str) -> SplitPoint:
    """Return a split point: a value of the first row key, or `UA,1545` of the first ones.

    A table with one row key takes the whole text as its value, commas too.

    Raises:
        InvalidError: more values than row keys, a wrong type.
    """
    fields = schema.row_keys
    values = [text] if len(fields) == 1 else next(csv.reader([text]), [])
    if not 0 < len(values) <= len(fields):
        names = ", ".join(field.name for field in fields)
        hint = "write values of the first row keys, in double quotes where they hold a comma"
        raise InvalidError("not a split point", text=text, row_keys=names, hint=hint)
    found = tuple(key_value_from_text(f, value) for f, value in zip(fields, values, strict=False))
    return found[0] if len(found) == 1 else found


def split_point_text(schema: Schema, point: SplitPoint) -> str:
    """Return a split point as `split_point_from_text` reads it, in one line.

    Raises:
        InvalidError: it has a value that does not fit in a line.
    """
    values = point if isinstance(point, tuple) else (point,)
    texts = [key_value_text(f, v) for f, v in zip(schema.row_keys, values, strict=False)]
    line = texts[0]
    if len(schema.row_keys) > 1:
        written = io.StringIO()
        csv.writer(written, lineterminator="").writerow(texts)
        line = written.getvalue()
    if line.splitlines() != [line] or not line.strip():
        hint = "take Table.split_points in Python"
        raise InvalidError("a split point does not fit in a line", point=ascii(line), hint=hint)
    return line


def text_in(path: Path) -> str:
    """Return the text of a file that an option names. A pipe or a device is never opened.

    Raises:
        InvalidError: it is one. OSError, UnicodeDecodeError: it cannot be read as text.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        hint = "write it to a file, and name that one"
        raise InvalidError("a device or a pipe is not a file", path=path, hint=hint)
    return path.read_text("utf-8")


def split_points_from_file(schema: Schema, path: Path, *, as_base64: bool) -> list[SplitPoint]:
    """Return the split points of a file that has one in each line. Empty lines are skipped.

    as_base64: each line is one value of the first row key.

    Raises:
        UnreadableInputError: it cannot be read as text, or as base64.
        InvalidError: a line is not a split point.
    """
    field = schema.row_keys[0]
    try:
        lines = [line for line in text_in(path).splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        hint = "one split point in each line, as text"
        raise UnreadableInputError(
            "cannot read split points", path=path, reason=error, hint=hint
        ) from None
    if not as_base64:
        return [split_point_from_text(schema, line) for line in lines]
    try:
        raw = [base64.b64decode(line, validate=True) for line in lines]
        return [key_value_from_text(field, one.decode()) if _is_text(field) else one for one in raw]
    except (binascii.Error, UnicodeDecodeError) as error:
        hint = "one base64 text in each line"
        raise UnreadableInputError(
            "split points are not base64", path=path, reason=error, hint=hint
        ) from None


def _is_text(field: Field) -> bool:
    return str(field.type) != "binary"


def schema_from_options(
    row_keys: Sequence[str], sort_keys: Sequence[str], values: Sequence[str]
) -> Schema:
    """Return the schema that `name:type` options name.

    Raises:
        InvalidError: not of the form, or a type that is not allowed.
    """
    return schema_of(
        row_keys=named_types(row_keys),
        sort_keys=named_types(sort_keys),
        values=named_types(values),
    )


def named_types(texts: Sequence[str]) -> dict[str, object]:
    """Return types by field: `NAME:TYPE`.

    Raises:
        InvalidError: not of the form, or a field that is named twice.
    """
    fields: dict[str, object] = {}
    for text in texts:
        name, colon, type_ = text.partition(":")
        if not colon or not type_:
            hint = "write NAME:TYPE, for instance id:string or count:int64?"
            raise InvalidError("a field needs a type", field=text, hint=hint)
        if name in fields:
            raise InvalidError("two fields have one name", name=name, hint="name each field once")
        fields[name] = _type_text(text, type_)
    return fields


def _type_text(text: str, type_: str) -> object:
    if not type_.startswith("{"):
        return type_
    try:
        return json.loads(type_, object_pairs_hook=fields_once)
    except (ValueError, RecursionError) as error:
        hint = 'for instance \'tags:{"list": "string"}\''
        raise InvalidError("a nested type is JSON", field=text, reason=error, hint=hint) from None


def settings_from_text(
    texts: Sequence[str], *, hint: str = "write --set NAME=VALUE"
) -> dict[str, object]:
    """Return settings by name: `leaf_rows_max=50000`.

    Raises:
        InvalidError: not of the form, or a setting that is named twice.
    """
    settings: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidError("not a setting", setting=text, hint=hint)
        if name in settings:
            raise InvalidError("a setting is named twice", setting=name, hint="name it once")
        settings[name] = int(value) if re.fullmatch(r"[+-]?\d[\d_]*", value) else value
    return settings


def zones_from_text(schema: Schema, texts: Sequence[str]) -> dict[str, str]:
    """Return zones by field: `UTC` of all fields in UTC, `at=Europe/Berlin` of one.

    Raises:
        InvalidError: two zones of one field, or of all.
    """
    every = [text for text in texts if "=" not in text]
    named = dict(text.split("=", 1) for text in texts if "=" in text)
    if len(every) > 1 or len(every) + len(named) < len(texts):
        hint = "write --zone ZONE once, and --zone FIELD=ZONE once for each other field"
        raise InvalidError("two zones where one is meant", zone=", ".join(texts), hint=hint)
    in_utc = [f.name for f in schema.fields if str(f.type) == "timestamp[us, UTC]"]
    return dict.fromkeys(in_utc, every[0]) | named if every else named


def renames_from_text(texts: Sequence[str]) -> dict[str, str]:
    """Return new names by old ones: `OLD=NEW`.

    Raises:
        InvalidError: not of the form, or a field that is renamed twice.
    """
    names: dict[str, str] = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if not equals or old in names:
            hint = "write --rename OLD=NEW, once for each field"
            raise InvalidError("not a new name", rename=text, hint=hint)
        names[old] = new
    return names


def processing_in_file(path: Path) -> Processing | None:
    """Return the processing that a file of JSON describes; `null`: none.

    Raises:
        InvalidError: something is not allowed, or it cannot be read.
    """
    hint = 'for instance {"age_off": {"field": "at", "seconds": 86400}}'
    try:
        value = json.loads(text_in(path), object_pairs_hook=fields_once)
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableInputError(
            "cannot read the processing", path=path, reason=error, hint=hint
        ) from None
    return None if value is None else processing_from_json(value)
