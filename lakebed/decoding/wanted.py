"""Decides which values of a record a table wants, and as what each of them is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from lakebed.config.decoders import ColumnOf, ColumnsOf, DecoderSettings, Path, TimeOf, path_of
from lakebed.errors import InvalidError
from lakebed.model.schema import Field, Schema
from lakebed.model.types import Primitive, Type

TEXT = Primitive("string")
Raw = Type | Literal["number"]
"""As what a value is read before it becomes a column or a time. A number is an integer, or a
decimal where it has a fraction or comes as text."""

IN_UTC = "timestamp[us, UTC]"
LINEAGE = ("_split", "_position", "_version")
OF_RECORD = {"key": "_key", "headers": "_headers", "time": "_time"}
HEADERS_TYPE = "map<string, binary>"
_TYPES_OF = {
    "_split": ("string",),
    "_position": ("int64",),
    "_version": ("int64",),
    "_key": ("binary", "string"),
    "_headers": (HEADERS_TYPE,),
    "_time": (IN_UTC,),
}


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a record.

    path: where in the record it stands.
    raw: as what it is read.
    time: how it is written, if a time is made of it.
    drops: whether one of another type, or out of range, is left out and its record stays.
    """

    path: Path
    raw: Raw
    time: TimeOf | None = None
    drops: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table, and the value of a record that fills it.

    value: index of the value; None: of no value.
    time: how the value is written, where it is a time.
    """

    field: Field
    value: int | None
    time: TimeOf | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """The values of a record that a table wants.

    columns: all of the table's, in their order.
    time: index of the value that is the event's time, if one is.
    """

    values: tuple[Value, ...]
    columns: tuple[Column, ...]
    time: int | None


def wanted_of(settings: DecoderSettings, said: ColumnsOf, schema: Schema, *, at: str) -> Wanted:
    """Return what a table wants of records.

    at: path of the connection's section, for messages.

    Raises:
        InvalidError: decoder, columns and table do not fit. It names the field, and what may be.
    """
    return _Plan(settings, said, schema, at).wanted()


class _Plan:
    def __init__(self, settings: DecoderSettings, said: ColumnsOf, schema: Schema, at: str) -> None:
        self._settings = settings
        self._said = said
        self._schema = schema
        self._at = at
        self._indices: dict[Path, int] = {}
        self._values: list[Value] = []
        self._from: list[str] = []

    def wanted(self) -> Wanted:
        own = self._of_record_itself()
        for name in self._said.columns:
            if name in own:
                self._refuse(f"columns.{name}", "a column has two sources", hint="keep one of them")
            if not any(field.name == name for field in self._schema.fields):
                hint = self._schema.hint_for(name)
                self._refuse(f"columns.{name}", "the table has no such column", hint=hint)
        time = self._settings.time
        at_time = None
        if time is not None and time.path:
            path = path_of(time.path, at="decoder.time.path")
            at_time = self._value(path, raw_of_time(time), "decoder.time.path", time)
        columns = tuple(
            Column(field, None) if field.name in own else self._column(field)
            for field in self._schema.fields
        )
        self._check_paths()
        for text, type_ in self._said.known.items():
            path = path_of(text, at=f"{self._at}.route.field")
            if not any(
                _is_within(path, other) or _is_within(other, path) for other in self._indices
            ):
                self._value(path, Primitive(type_), f"{self._at}.route.field", None)
        return Wanted(self._with_drops(columns, at_time), columns, at_time)

    def _with_drops(self, columns: Iterable[Column], at_time: int | None) -> tuple[Value, ...]:
        """Return the values, with those marked without which a record is a row, too."""
        if self._said.types != "discard_field":
            return tuple(self._values)
        kept = {column.value for column in columns if not column.field.nullable} | {at_time}
        return tuple(
            replace(value, drops=index not in kept and value.time is None)
            for index, value in enumerate(self._values)
        )

    def _of_record_itself(self) -> set[str]:
        """Return the columns that do not come of values, after a look at their types."""
        said = self._said
        names = [(OF_RECORD[name], "meta") for name in said.meta]
        names += [(name, "lineage") for name in LINEAGE] if said.lineage else []
        names += [(said.rest, "rest")] if said.rest else []
        names += [(said.auto_key, "auto_key")] if said.auto_key else []
        for name, setting in names:
            found = [field for field in self._schema.fields if field.name == name]
            types = (
                _TYPES_OF.get(name, ("string", "binary")) if setting in {"meta", "lineage"} else ()
            )
            types = types or ("string", "binary")
            if not found:
                hint = f"add the column {name!r} of type {' or '.join(types)} to the table"
                self._refuse(setting, "the table has no such column", column=name, hint=hint)
            elif str(found[0].type) not in types:
                hint = f"make it {' or '.join(types)}"
                got = found[0].type
                self._refuse(setting, "a column has another type", column=name, type=got, hint=hint)
        chosen = [name for name, _ in names]
        if len(set(chosen)) < len(chosen):
            last = next(of for name, of in reversed(names) if chosen.count(name) > 1)
            self._refuse(last, "a column has two sources", hint="keep one of them")
        return set(chosen)

    def _column(self, field: Field) -> Column:
        said = self._said.columns.get(field.name)
        at = f"columns.{field.name}"
        if said is None and (self._said.columns or self._settings.format == "raw"):
            if not field.nullable:
                hint = f'say where it comes from: {at} = "PATH"; or make the column nullable'
                self._refuse(at, "a required column has no source", hint=hint)
            return Column(field, None)
        text = said.path if isinstance(said, ColumnOf) else (said or field.name)
        path = path_of(text, at=f"{self._at}.{at}") if said else (field.name,)
        time = TimeOf(as_=said.as_, zone=said.zone) if isinstance(said, ColumnOf) else None
        if time is None and str(field.type) == IN_UTC:
            time = self._time_at(path)
        elif time is not None and str(field.type) != IN_UTC:
            hint = f"leave `as` out, or make the column {IN_UTC!r}"
            self._refuse(f"{at}.as", "the column is no time in UTC", type=field.type, hint=hint)
        raw = raw_of_time(time) if time is not None else field.type
        return Column(field, self._value(path, raw, at, time), time)

    def _time_at(self, path: Path) -> TimeOf:
        """Return how a time in UTC is written: at the path of the event's time, as that is."""
        time = self._settings.time
        if time is not None and time.path and path_of(time.path, at="decoder.time.path") == path:
            return time
        return TimeOf(as_="iso")

    def _value(self, path: Path, raw: Raw, source: str, time: TimeOf | None) -> int:
        index = self._indices.get(path)
        if index is None:
            index = self._indices[path] = len(self._values)
            self._values.append(Value(path, raw, time))
            self._from.append(source)
            return index
        known = self._values[index]
        if known.raw != raw:
            if not (_is_number(known.raw) and _is_number(raw)):
                self._refuse(
                    source,
                    "one value is read in two ways",
                    path=".".join(path),
                    ways=f"{known.raw}, {raw}",
                    hint=f"see {self._from[index]}: give both columns one type",
                )
            raw = "number"
        self._values[index] = Value(path, raw, known.time or time)
        return index

    def _check_paths(self) -> None:
        """Refuse a path that goes on inside of another one's value."""
        for index, value in enumerate(self._values):
            for length in range(1, len(value.path)):
                outer = self._indices.get(value.path[:length])
                if outer is not None:
                    self._refuse(
                        self._from[index],
                        "a path leads into a value that is a column itself",
                        path=".".join(value.path),
                        hint=f"see {self._from[outer]}: take the one or the other",
                    )

    def _refuse(self, setting: str, problem: str, *, hint: str, **facts: object) -> None:
        at = setting if setting.startswith("decoder") else f"{self._at}.{setting}"
        raise InvalidError(problem, at=at, **facts, hint=hint)


def _is_within(path: Path, outer: Path) -> bool:
    return path[: len(outer)] == outer


def _is_number(raw: Raw) -> bool:
    return raw == "number" or (isinstance(raw, Primitive) and "int" in raw.name)


def raw_of_time(time: TimeOf) -> Raw:
    """Return as what a time is read."""
    return "number" if time.as_ in ("s", "ms", "us", "ns", "auto") else TEXT


def tree_of(values: tuple[Value, ...]) -> dict[str, object]:
    """Return values by the names of their paths: a dict of dicts, with an index for each value."""
    tree: dict[str, object] = {}
    for index, value in enumerate(values):
        node = tree
        for name in value.path[:-1]:
            inner = node.setdefault(name, {})
            assert isinstance(inner, dict), "no path leads into another one's value"
            node = inner
        node[value.path[-1]] = index
    return tree
