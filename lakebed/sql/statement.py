"""Parses what a text in SQL asks for, before anything of it is run: DuckDB's own parser gives its
tree."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb
import msgspec

from lakebed.errors import InvalidError, did_you_mean

SYSTEM_SCHEMA = "lakebed"
FUNCTIONS = ("generate_series", "range", "unnest")
"""Functions that may stand where a table does: none reads a file, a setting or the network."""
TEXT_BYTES_MAX = 1 << 20
KNOWN_MAX, KNOWN_LETTERS_MAX = 256, 4_096
"""Texts of which a process keeps what they ask for, and how long each may be."""
_SELECT_HINT = "write one SELECT; rows are changed by `ingest`"
_SYNTAX_HINT = 'mend it at that place; a name that is a word of SQL, as at, is written "at"'
_REFUSED_SOURCES = {
    "SHOW_REF": "write SELECT; `lakebed table describe` shows a table's columns",
    "PIVOT": "write sum(...) FILTER (WHERE ...) for each column",
}
_UNSERIALIZED = re.compile(r"(^|[()])\s*pivot\b", re.IGNORECASE)
"""As a statement, also behind WITH or as a subquery: of these DuckDB's parser gives no tree."""


class Statement(msgspec.Struct, frozen=True):
    """One SELECT.

    tables: names where a table of the lake stands, in lower case.
    system_tables: the same of those in the schema `lakebed`.
    """

    tables: frozenset[str]
    system_tables: frozenset[str]


def parsed(connection: duckdb.DuckDBPyConnection, text: object) -> Statement:
    """Return what a text asks for. Nothing of it is run, and no table is opened. The same is asked
    again and again with other parameters: what was found in short texts is kept.

    Raises:
        InvalidError: it is no SELECT or several statements, names a catalog or a schema of the
            engine, or a function that reads something else than tables of the lake.
    """
    if type(text) is str and (known := _known(text)) is not None:
        return known
    if not isinstance(text, str):
        raise _nothing_given()
    if len(text.encode("utf-8", "replace")) > TEXT_BYTES_MAX:
        hint = "pass values as parameters, or as a table"
        raise InvalidError("the SQL is too long", max_bytes=TEXT_BYTES_MAX, hint=hint)
    statements = _tree_of(connection, text)
    if not statements:
        raise _nothing_given()
    if len(statements) != 1:
        hint = "send each in a call of its own"
        raise InvalidError("SQL is one statement", statements=len(statements), hint=hint)
    found = _Found()
    _walk(statements[0], frozenset(), found)
    statement = Statement(frozenset(found.tables), frozenset(found.system_tables))
    if type(text) is str and len(text) <= KNOWN_LETTERS_MAX:
        _keep(text, statement)
    return statement


def _known(text: str) -> Statement | None:
    """Return what a text asks for, if that is known, which makes it the newest of the known."""
    with _KNOWN_LOCK:
        found = _KNOWN.pop(text, None)
        if found is not None:
            _KNOWN[text] = found
        return found


def _keep(text: str, statement: Statement) -> None:
    """Keep what a text asks for, instead of the one that was not asked for longest."""
    with _KNOWN_LOCK:
        _KNOWN[text] = statement
        if len(_KNOWN) > KNOWN_MAX:
            del _KNOWN[next(iter(_KNOWN))]


def _tree_of(connection: duckdb.DuckDBPyConnection, text: str) -> list[Any]:
    try:
        text.encode()
        ((answer,),) = connection.execute("SELECT json_serialize_sql(?)", [text]).fetchall()
        tree = json.loads(answer)
    except (duckdb.Error, ValueError, RecursionError) as error:
        problem = str(error).splitlines()[0][:200]
        hint = "write it as simple SQL"
        raise InvalidError("the SQL cannot be read", problem=problem, hint=hint) from None
    if not tree["error"]:
        return list(tree["statements"])
    message = tree["error_message"]
    if tree["error_type"] != "parser":  # it knows the statement, and it is none of ours
        hint = _REFUSED_SOURCES["PIVOT"] if _UNSERIALIZED.search(text) else _SELECT_HINT
        raise InvalidError("only SELECT can be run", problem=message, hint=hint)
    facts = _location(text, tree.get("position"))
    raise InvalidError("not SQL", problem=message, **facts, hint=_SYNTAX_HINT)


def _nothing_given() -> InvalidError:
    return InvalidError("no SQL was given", hint="for instance select count(*) from trips")


def _location(text: str, position: object) -> dict[str, str]:
    """Return where an offset lies, for people."""
    if not isinstance(position, str) or not position.isdigit():
        return {}
    before = text.encode()[: int(position)].decode("utf-8", "ignore")
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return {"place": f"line {line}, column {column}"}


_KNOWN: dict[str, Statement] = {}
"""Statements by text, the last one asked for at the end: what a statement asks for says nothing of
tables, nor of settings, so it stays true."""
_KNOWN_LOCK = threading.Lock()


class _Found:
    def __init__(self) -> None:
        self.tables: set[str] = set()
        self.system_tables: set[str] = set()


def _walk(tree: object, named: frozenset[str], found: _Found) -> None:
    """Look at a tree. named: what WITH around it has named."""
    stack = [(tree, named)]
    while stack:
        node, names = stack.pop()
        if isinstance(node, list):
            stack += [(one, names) for one in node]
        elif isinstance(node, Mapping):
            inner = names
            if "class" not in node:
                _source(node, names, found)
                inner = _with_names(node, names, stack)
            stack += [(value, inner) for key, value in node.items() if key != "cte_map"]


def _with_names(
    node: Mapping[str, Any], names: frozenset[str], stack: list[tuple[object, frozenset[str]]]
) -> frozenset[str]:
    """Return the names that are known in a query, and put its WITH on the stack: each of these
    knows those before it, a recursive one itself, too."""
    for name, query in _with_of(node):
        own = {name.lower()} if _is_recursive(query) else set()
        stack.append((query, names | own))
        names |= {name.lower()}
    if node.get("type") == "RECURSIVE_CTE_NODE":
        names |= {str(node.get("cte_name", "")).lower()}
    return names


def _with_of(node: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    entries = node.get("cte_map")
    if isinstance(entries, Mapping):
        for entry in entries.get("map", ()):
            yield str(entry["key"]), entry["value"]


def _is_recursive(tree: object) -> bool:
    query = tree.get("query_node", tree.get("query")) if isinstance(tree, Mapping) else None
    if isinstance(query, Mapping) and "node" in query:
        query = query["node"]
    return isinstance(query, Mapping) and query.get("type") == "RECURSIVE_CTE_NODE"


def _source(node: Mapping[str, Any], names: frozenset[str], found: _Found) -> None:
    """Note what stands in a FROM, or refuse it."""
    kind = node.get("type")
    if kind in _REFUSED_SOURCES:
        what = "PIVOT" if kind == "PIVOT" else "DESCRIBE, SHOW and SUMMARIZE"
        raise InvalidError("only SELECT can be run", got=what, hint=_REFUSED_SOURCES[kind])
    if kind == "TABLE_FUNCTION":
        function = str(node["function"].get("function_name", "")).lower()
        if function not in FUNCTIONS:
            hint = did_you_mean(function, FUNCTIONS, what="function")
            raise InvalidError("no such function of tables", function=function, hint=hint)
    if kind == "BASE_TABLE":
        _note_table(node, names, found)


def _note_table(node: Mapping[str, Any], names: frozenset[str], found: _Found) -> None:
    name = str(node["table_name"])
    schema, catalog = str(node.get("schema_name", "")), str(node.get("catalog_name", ""))
    if catalog or schema.lower() not in {"", SYSTEM_SCHEMA}:
        whole = ".".join(part for part in (catalog, schema, name) if part)
        hint = "name a table of the lake, or one in the schema lakebed, as lakebed.files"
        raise InvalidError("no such schema", table=ascii(whole)[:200], hint=hint)
    if node.get("at_clause"):
        hint = "leave AT out; `as_of`, or --as-of, says the version"
        raise InvalidError("a table has no AT in SQL", table=name, hint=hint)
    if schema:
        found.system_tables.add(name.lower())
    elif name.lower() not in names:
        found.tables.add(name.lower())
