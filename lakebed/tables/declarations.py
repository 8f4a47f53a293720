"""Reads tables as files declare them: one file of TOML for each. It does not look at a lake."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from lakebed.config.settings import TableSettings, check_compaction, table_settings
from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.keys import KeyValue
from lakebed.model.names import TableName, table_name
from lakebed.model.processing import Processing, checked_processing, processing_from_json
from lakebed.model.schema import Schema, nullable_by_mark, schema_from_json
from lakebed.tables.definition import point_from_json
from lakebed.tasks.watched_folders import watched_folder

SUFFIX, POINTS_SUFFIX = ".toml", ".jsonl"
PROBLEMS_SHOWN_MAX = 10
_KEYS = ("row_keys", "sort_keys", "values")
_SAID = (
    "name",
    "was",
    "adopt",
    "online",
    "watch",
    "split_points",
    *_KEYS,
    "settings",
    "processing",
)
_OF_FIELD = ("type", "nullable", "was")


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """A table as a file declares it. What the file leaves out is as in a new table.

    file: its name.
    was: the name that the table has or had; None: no other.
    adopt: whether a table of this name that no file made is taken over.
    watch: the folder whose files become its rows as they arrive; "": none.
    former: names that fields have or had, by their names from now on.
    settings: those that the file says.
    split_points: of a new table.
    """

    file: str
    name: TableName
    schema: Schema
    was: TableName | None = None
    adopt: bool = False
    online: bool = True
    watch: str = ""
    former: Mapping[str, str] = {}
    settings: Mapping[str, Any] = {}
    processing: Processing | None = None
    split_points: Sequence[tuple[KeyValue, ...]] = ()


def declarations_of(texts: Mapping[str, str]) -> list[Declaration]:
    """Return the tables that files declare, by name. texts: by file name; those that end in
    `.toml` declare a table each, others are read when one of them names them.

    Raises:
        InvalidError: no file declares a table; a file is no TOML, or says what there is not; two
            files declare one table. The error names each file, and the nearest name.
    """
    wrong: dict[str, InvalidError] = {}
    found: dict[str, Declaration] = {}
    for file in sorted(texts):
        if not file.endswith(SUFFIX):
            continue
        try:
            with naming(file=file):
                one = _declaration(file, texts)
                _check_once(one, found)
            found[one.name] = one
        except InvalidError as error:
            wrong[file] = error
    refuse_together(wrong, "several files of tables are wrong")
    if not found:
        hint = 'write TABLE.toml with `name = "TABLE"` and a section [row_keys]'
        raise InvalidError("no file declares a table", files=len(texts), hint=hint)
    return [found[name] for name in sorted(found)]


@contextmanager
def naming(**facts: object) -> Iterator[None]:
    """Let an error from inside name a file, or where in it."""
    try:
        yield
    except InvalidError as error:
        error.facts = {**facts, **error.facts}
        raise


def refuse_together(wrong: Mapping[str, InvalidError], message: str) -> None:
    """Raise the one problem there is, or one error that tells several. Does nothing for none."""
    if len(wrong) > 1:
        shown = list(wrong.values())[:PROBLEMS_SHOWN_MAX]
        more = len(wrong) - len(shown)
        hint = "; ".join(map(str, shown)) + (f"; and {more} more" if more else "")
        raise InvalidError(message, count=len(wrong), hint=hint)
    for problem in wrong.values():
        raise problem


def _check_once(one: Declaration, others: Mapping[str, Declaration]) -> None:
    if one.name in others:
        hint = f"{others[one.name].file} declares it, too: declare it in one of them"
        raise InvalidError("two files declare one table", table=one.name, hint=hint)
    for other in others.values():
        if one.was is not None and one.was == other.was:
            hint = f"{other.file} says the same: one table was called so"
            raise InvalidError("two tables have one former name", was=one.was, hint=hint)
        if one.watch and one.watch == other.watch:
            hint = f"{other.file} says the same: a file is one table's"
            raise InvalidError("two tables watch one folder", watch=one.watch, hint=hint)


def _declaration(file: str, texts: Mapping[str, str]) -> Declaration:
    said = _parsed(texts[file])
    for name in said:
        if name not in _SAID:
            raise InvalidError("unknown part of a table", at=ascii(name), hint=_part_hint(name))
    if "name" not in said:
        hint = f'write `name = "{file.removesuffix(SUFFIX)}"`'
        raise InvalidError("a table without a name", hint=hint)
    name, was = table_name(said["name"]), said.get("was")
    if was == name:
        hint = "leave `was` out, or write the name that the table had before"
        raise InvalidError("a table that was called as it is", at="was", was=was, hint=hint)
    with naming(at="watch"):
        watch = watched_folder(said.get("watch", ""))
    schema, former = _schema(said)
    settings = _section(said, "settings")
    with naming(at="settings"):
        check_compaction(settings, table_settings(settings))
    with naming(at="processing"):
        processing = _processing(said, schema)
    return Declaration(
        file=file,
        name=name,
        schema=schema,
        was=None if was is None else table_name(was),
        adopt=_flag(said, "adopt", default=False),
        online=_flag(said, "online", default=True),
        watch=watch,
        former=former,
        settings=settings,
        processing=processing,
        split_points=_split_points(said.get("split_points", []), schema, texts),
    )


def _part_hint(name: str) -> str:
    if name in TableSettings.__struct_fields__:
        return "it is a setting: write it below [settings]"
    return did_you_mean(name, _SAID, what="part")


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        hint = "`lakebed config download` shows how files of tables look"
        raise InvalidError(
            "not a file of a table: it is no TOML", problem=error, hint=hint
        ) from None


def _section(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = said.get(name, {})
    if not isinstance(value, Mapping):
        hint = f"write [{name}], and below it NAME = VALUE"
        raise InvalidError("a value is given to a section", at=name, hint=hint)
    return value


def _flag(said: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = said.get(name, default)
    if not isinstance(value, bool):
        hint = "write true or false"
        raise InvalidError("not a value for the part", at=name, value=ascii(value)[:80], hint=hint)
    return value


def _schema(said: Mapping[str, Any]) -> tuple[Schema, dict[str, str]]:
    """Return the schema of a new table, and former names of fields."""
    former: dict[str, str] = {}
    parts: dict[str, list[dict[str, object]]] = {}
    for part in _KEYS:
        parts[part] = []
        for name, value in _section(said, part).items():
            with naming(at=f"{part}.{name}"):
                parts[part].append(_field(name, value, former))
    schema = schema_from_json(parts)
    for field in schema.fields:
        field.check_nesting()
    if len(set(former.values())) < len(former):
        hint = "one field was called so: leave `was` out of the rest"
        raise InvalidError("two fields have one former name", hint=hint)
    return schema, former


def _field(name: str, value: object, former: dict[str, str]) -> dict[str, object]:
    """Return a field's JSON values from `T`, `T?`, a nested type, or { type, nullable, was }."""
    if not isinstance(value, Mapping) or "type" not in value:
        return nullable_by_mark(name, value)
    for key in value:
        if key not in _OF_FIELD:
            hint = did_you_mean(key, _OF_FIELD, what="part")
            raise InvalidError("unknown part of a field", part=ascii(key), hint=hint)
    form = nullable_by_mark(name, value["type"])
    if "nullable" in value:
        form = {"nullable": value["nullable"], **form}
    if "was" in value:
        if not isinstance(value["was"], str) or value["was"] == name:
            hint = "write the name that the field has in the table, or leave `was` out"
            raise InvalidError("not a former name", was=ascii(value["was"])[:80], hint=hint)
        former[name] = value["was"]
    return form


def _processing(said: Mapping[str, Any], schema: Schema) -> Processing | None:
    parts = dict(_section(said, "processing"))
    if not parts:
        return None
    iterator = parts.get("iterator")
    if isinstance(iterator, Mapping) and isinstance(iterator.get("config"), str):
        config = _json(iterator["config"], "iterator.config")  # JSON has null, and TOML has not
        parts["iterator"] = {**iterator, "config": config}
    processing = checked_processing(processing_from_json(parts), schema)
    if processing.age_off is not None and processing.age_off.gone_before is not None:
        hint = "leave it out: the lake sets it when `seconds` are made more"
        raise InvalidError(
            "a part is given that only the lake sets", part="age_off.gone_before", hint=hint
        )
    return processing


def _split_points(
    said: object, schema: Schema, texts: Mapping[str, str]
) -> list[tuple[KeyValue, ...]]:
    """Return split points that stand in the file, or line by line in one beside it."""
    at = "split_points"
    if isinstance(said, list):
        return _points(said, schema, lambda number: f"{at}[{number - 1}]")
    beside = [name for name in texts if name.endswith(POINTS_SUFFIX)]
    if not isinstance(said, str) or said not in beside:
        hint = 'write a list, for instance ["g", ["p", 7]], or the name of a .jsonl file beside'
        if isinstance(said, str) and beside:
            hint = did_you_mean(said, beside, what="file")
        raise InvalidError("no split points", at=at, got=ascii(said)[:80], hint=hint)
    lines = [line for line in texts[said].split("\n") if line.strip()]
    values = []
    for number, line in enumerate(lines, 1):
        values.append(_json(line, f"{said}, line {number}"))
    return _points(values, schema, lambda number: f"{said}, line {number}")


def _points(
    values: Sequence[object], schema: Schema, where: Callable[[int], str]
) -> list[tuple[KeyValue, ...]]:
    found = []
    for number, value in enumerate(values, 1):
        with naming(at=where(number)):
            found.append(point_from_json(schema, value))
    return found


def _json(text: str, at: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidError(
            "a text is not JSON", at=at, problem=error, hint="write JSON there"
        ) from None
