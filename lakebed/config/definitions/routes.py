"""Routes: which table a row belongs to, by the value of one field. A connection says one instead of
a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from lakebed.config.decoders import path_of
from lakebed.config.definitions.toml_fields import at_of, check_names, section
from lakebed.errors import InvalidError
from lakebed.model.names import table_name

TABLES_MAX = 100
"""Most tables of one route: each table reads the whole source by itself."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """The rule that decides which table a row belongs to.

    field: path of the value that decides, as in `meta.type`. No column needs to have it.
    as_: in the file `as`. As what it is read: `string`, or `int64`.
    tables: name of the table by value. Several values may lead into one table.
    otherwise: the table of all other values, and of records without one. Left out: `unrouted` says
        what becomes of these.
    unrouted: a record with no table for its value is kept in the quarantine (`quarantine`, with the
        verdict `no-route`), or counted as filtered (`filter`).
    """

    field: str
    as_: Literal["string", "int64"] = msgspec.field(name="as", default="string")
    tables: dict[str, str]
    otherwise: str = ""
    unrouted: Literal["quarantine", "filter"] = "quarantine"

    @property
    def names(self) -> list[str]:
        """Return the names of the tables, each once, in ascending order."""
        return sorted({*self.tables.values(), *([self.otherwise] if self.otherwise else [])})

    def values_of(self, table: str) -> list[str]:
        """Return the values that are said to lead into a table."""
        return [value for value, of in self.tables.items() if of == table]

    def path_of(self, table: str) -> str:
        """Return the path of the field that names a table."""
        values = self.values_of(table)
        return f"tables.{at_of(values[0])}" if values else "otherwise"

    def text_of(self, table: str) -> str:
        """Return which rows a table gets, for people."""
        values = self.values_of(table)
        said = [f"{self.field} = {' or '.join(map(ascii, values))}"] if values else []
        said += [f"any other {self.field}"] if table == self.otherwise else []
        return ", or ".join(said)

    def misled(self, earlier: Route) -> str | None:
        """Return what leads to another table than by an earlier route, as the path of its field;
        None: nothing does. What had no table may get one."""
        for field in ("field", "as_"):
            if getattr(self, field) != getattr(earlier, field):
                return field.rstrip("_")
        if earlier.otherwise and self.otherwise != earlier.otherwise:
            return "otherwise"
        for value in sorted({*self.tables, *earlier.tables}):
            before = earlier.tables.get(value, earlier.otherwise)
            if before and self.tables.get(value, self.otherwise) != before:
                return at_of("tables", value)
        return None


def route_of(said: object, *, at: str) -> Route:
    """Return the route that a connection says. at: path of the section, for messages.

    Raises:
        InvalidError: it says what there is not. It names the field, and the nearest.
    """
    fields = section(said, at)
    check_names(fields, Route.__struct_encode_fields__, at)
    if "field" not in fields:
        hint = f'say by which value: {at}.field = "type"'
        raise InvalidError("a route without a field", at=at, hint=hint)
    if not isinstance(fields.get("tables", {}), Mapping):
        hint = 'write { VALUE = "TABLE" }'
        raise InvalidError("a value is given to a section", at=f"{at}.tables", hint=hint)
    if not fields.get("tables"):
        hint = f'say at least one: {at}.tables = {{ VALUE = "TABLE" }}'
        raise InvalidError("a route without tables", at=f"{at}.tables", hint=hint)
    route = _converted(fields, at)
    path_of(route.field, at=f"{at}.field")
    for value, name in route.tables.items():
        _check_table(name, f"{at}.tables.{at_of(value)}")
        if route.as_ == "int64":
            _check_number(value, f"{at}.tables")
    if "otherwise" in fields:
        _check_table(route.otherwise, f"{at}.otherwise")
        if "unrouted" in fields:
            hint = "leave one of them out: with `otherwise`, each record has a table"
            raise InvalidError(
                "a route says twice what becomes of all other values", at=at, hint=hint
            )
    if len(route.names) > TABLES_MAX:
        hint = f"lead into at most {TABLES_MAX}"
        raise InvalidError(
            "a route into too many tables", at=at, tables=len(route.names), hint=hint
        )
    return route


def _converted(fields: Mapping[str, Any], at: str) -> Route:
    try:
        return msgspec.convert(dict(fields), Route)
    except msgspec.ValidationError as error:
        problem = str(error).replace(" - at `$", ", at `")
        raise InvalidError(
            "a route has a value that is not allowed",
            at=at,
            problem=problem,
            hint="give what the problem asks for",
        ) from None


def _check_table(name: str, at: str) -> None:
    try:
        table_name(name)
    except InvalidError as error:
        raise InvalidError(error.message, at=at, hint=error.hint, **error.facts) from None


def _check_number(value: str, at: str) -> None:
    is_number = value.removeprefix("-").isdecimal() and value.isascii() and len(value) <= 20
    if not is_number or not _LEAST <= int(value) <= _MOST or str(int(value)) != value:
        hint = 'write a whole number as in { 7 = "TABLE" }, or leave `as` out'
        raise InvalidError("not a value of an int64", at=at, got=ascii(value)[:80], hint=hint)
