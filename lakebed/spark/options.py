"""Options of `format("lakebed")`: texts, named as arguments of `read` and `append` are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lakebed.bootstrap.cluster.frame_imports import Asked
from lakebed.bootstrap.cluster.slice_scans import PIN_SECONDS, SLICE_BYTES, ScanOptions
from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.json_fields import fields_once
from lakebed.model.predicates.language import Predicate
from lakebed.model.predicates.text import predicate_from_text
from lakebed.model.ranges import Range
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import Selection
from lakebed.query.conditions import condition_of
from lakebed.query.json_keys import key_field, key_of_json, value_of_json
from lakebed.user_files.input_files import ExtraColumns, extra_columns_of

BOTH = ("lake", "path", "table")
READ = (*BOTH, "keys", "ranges", "columns", "where", "as_of", "pin_seconds", "slice_bytes")
WRITE = (*BOTH, "job", "extra_columns")
RANGES_HINT = 'write [{"id": {"min": "a", "max": "c"}}] or [{"id": ["a", "c"]}]'


class ReadOptions:
    """The options that say what a frame reads.

    Raises: InvalidError: a table is missing, an unknown option, one that cannot be read.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        _refuse_unknown(given, READ)
        self.lake, self.table = _lake_and_table(given)
        self.scan = ScanOptions(
            _whole(given, "pin_seconds", PIN_SECONDS),
            _whole(given, "slice_bytes", SLICE_BYTES),
            given.get("as_of"),
        )
        self._keys = _json(given, "keys")
        self._ranges = _json(given, "ranges")
        self._columns = _columns(given)
        text = given.get("where")
        self._where = None if text is None else predicate_from_text(text)

    def condition(self, schema: Schema, pushed: Sequence[Predicate] = ()) -> Selection:
        """Return which rows and columns are asked for. pushed: what must be true besides.

        Raises:
            InvalidError: as `condition_of`.
        """
        keys = None if self._keys is None else _keys(schema, self._keys)
        ranges = None if self._ranges is None else _ranges(schema, self._ranges)
        where = self._where
        for predicate in pushed:
            where = predicate if where is None else where & predicate
        return condition_of(schema, keys=keys, ranges=ranges, columns=self._columns, where=where)


def append_options(
    given: Mapping[str, str], columns: Sequence[tuple[str, str]]
) -> tuple[str, Asked]:
    """Return the lake and what is to be appended. columns: name and type of each of the frame.

    Raises:
        InvalidError: a table is missing, an unknown option, one that cannot be read.
    """
    _refuse_unknown(given, WRITE)
    lake, table = _lake_and_table(given)
    extra_columns: ExtraColumns = extra_columns_of(given.get("extra_columns", "refuse"))
    return lake, Asked(table, columns, given.get("job"), extra_columns)


def _refuse_unknown(given: Mapping[str, str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known, what="option")
            raise InvalidError("unknown option", option=name, hint=hint)


def _lake_and_table(given: Mapping[str, str]) -> tuple[str, str]:
    lakes = [given[name] for name in ("lake", "path") if name in given]
    if len(lakes) != 1:
        hint = 'say option("lake", "./lake") or option("lake", "aws:INSTANCE")'
        raise InvalidError("one option says where the lake is", got=len(lakes), hint=hint)
    if "table" not in given:
        raise InvalidError("no table is named", hint='say option("table", NAME)')
    return lakes[0], given["table"]


def _whole(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit():
        raise InvalidError("not a whole number", option=name, got=text, hint="write digits")
    return int(text)


def _json(given: Mapping[str, str], name: str) -> list[Any] | None:
    """Return an option that is a list of JSON, or one element of it."""
    text = given.get(name)
    if text is None:
        return None
    try:
        value = json.loads(text, object_pairs_hook=fields_once)
    except (ValueError, RecursionError) as error:
        hint = RANGES_HINT if name == "ranges" else 'write ["a", "b"]'
        raise InvalidError("an option is not JSON", option=name, problem=error, hint=hint) from None
    return value if isinstance(value, list) else [value]


def _columns(given: Mapping[str, str]) -> list[str] | None:
    """Return names: with commas between, or a list of JSON where names have commas."""
    text = given.get("columns")
    if text is None:
        return None
    if not text.lstrip().startswith("["):
        return [name.strip() for name in text.split(",")]
    names = _json(given, "columns") or []
    if not all(isinstance(name, str) for name in names):
        raise InvalidError("columns are names", got=text, hint='write id,fare or ["id", "fare"]')
    return names


def _keys(schema: Schema, keys: Sequence[Any]) -> list[object]:
    return [key_of_json(schema, key) for key in keys]


def _ranges(schema: Schema, boxes: Sequence[Any]) -> list[dict[str, Range]]:
    if not all(isinstance(box, dict) for box in boxes):
        raise InvalidError("not ranges of fields", hint=RANGES_HINT)
    return [{name: _range(schema, name, one) for name, one in box.items()} for box in boxes]


def _range(schema: Schema, name: str, given: object) -> Range:
    field = key_field(schema, name)
    if isinstance(given, list) and len(given) == 2:
        given = {"min": given[0], "max": given[1]}
    if not isinstance(given, dict) or not set(given) <= set(Range.__struct_fields__):
        raise InvalidError("what is given is not a range", field=name, hint=RANGES_HINT)
    ends = {end: given.get(end) for end in ("min", "max")}
    least, most = (None if end is None else value_of_json(field, end) for end in ends.values())
    inclusive = {name: given[name] for name in ("min_inclusive", "max_inclusive") if name in given}
    if not all(type(one) is bool for one in inclusive.values()):
        raise InvalidError(
            "an end is called inclusive by what is neither true nor false",
            field=name,
            hint="write true or false",
        )
    return Range(least, most, **inclusive)
