"""Finds which version of each table a statement reads."""

from __future__ import annotations

from collections.abc import Mapping

from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.versions import AsOf, version_of
from lakebed.sql.statement import SYSTEM_SCHEMA, Statement

AsOfTables = AsOf | Mapping[str, AsOf]
"""A version for all tables of a statement, or one for each that is named."""


def asked_versions(as_of: AsOfTables | None, statement: Statement) -> Mapping[str, AsOf]:
    """Return the versions that are asked for, by the names of a statement's tables; the newest is
    read of those that are missing.

    Raises:
        InvalidError: not a version, a number where there are several tables, a name that is not in
            the statement.
    """
    if as_of is None:
        return {}
    if isinstance(as_of, Mapping):
        return _by_name(as_of, statement)
    tables = statement.tables
    if statement.system_tables:
        hint = f"say the version of each other table, or leave {SYSTEM_SCHEMA}.* out"
        raise InvalidError("system tables tell of now", as_of=as_of, hint=hint)
    if not tables:
        raise InvalidError("the SQL names no table", as_of=as_of, hint="leave the version out")
    if isinstance(version_of(as_of), int) and len(tables) > 1:
        hint = "give a time, a tag that each has, or say the version of each by its name"
        facts = {"as_of": as_of, "tables": ", ".join(sorted(tables))}
        raise InvalidError("a number is of one table", **facts, hint=hint)
    return dict.fromkeys(tables, as_of)


def _by_name(as_of: Mapping[str, AsOf], statement: Statement) -> Mapping[str, AsOf]:
    found: dict[str, AsOf] = {}
    for given, version in as_of.items():
        name = str(given).lower()  # as the statement has it
        if name not in statement.tables:
            hint = did_you_mean(name, statement.tables, what="table")
            raise InvalidError("no such table in the SQL", name=ascii(given)[:80], hint=hint)
        if name in found:
            raise InvalidError("a table is named twice", name=name, hint="name each once")
        version_of(version)
        found[name] = version
    return found
