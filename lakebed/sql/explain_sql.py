"""Explains what SQL cost: the engine's plan with its times, and what each scan of a table read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lakebed.query.datasets import TableScanner
from lakebed.query.explanation import QueryExplanation
from lakebed.sql.asked_versions import AsOfTables
from lakebed.sql.run_sql import RunSql
from lakebed.sql.sql_work import Parameters
from lakebed.statestore.open_table import OpenTable

_FILTER, _PROJECTION, _SCAN = "FILTER", "PROJECTION", "PYTHON_ARROW_SCAN"
"""Nodes of the engine's plan."""


class ScanExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of what one scan read.

    table: as the statement calls it.
    filter: what the engine asked of its rows, as Arrow writes it; "": of all.
    without_range: the parts of the filter that say nothing of row keys: they drop rows, and spare
        no leaf.
    hint: what would have spared reading; "": nothing that is known.
    read: by phase, and of how much.
    """

    table: str
    filter: str
    without_range: tuple[str, ...]
    hint: str
    read: QueryExplanation


class SqlExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that was run, whose rows were thrown away.

    plan: the engine's, with its times.
    scans: of tables, in the order in which they were begun.
    not_pushed: tests of rows right above a scan that reached none, as the engine writes them: every
        row that they meet was read.
    """

    plan: str
    scans: tuple[ScanExplanation, ...]
    not_pushed: tuple[str, ...]

    def __str__(self) -> str:
        """Lines for people."""
        lines = [self.plan.rstrip()]
        for scan in self.scans:
            lines += ["", f"scan of {scan.table}", f"filter      {scan.filter or 'none'}"]
            lines += [f"no range    {part}" for part in scan.without_range]
            lines += [str(scan.read)]
            lines += [f"hint        {scan.hint}"] if scan.hint else []
        if self.not_pushed:
            lines += ["", "tests that reached no scan, so that none of them became a range"]
            lines += [f"not pushed  {test}" for test in self.not_pushed]
        return "\n".join(lines)


def explain_sql(
    sql: RunSql,
    text: str,
    parameters: Parameters = (),
    *,
    this: OpenTable | None = None,
    as_of: AsOfTables | None = None,
) -> SqlExplanation:
    """Run a statement and return what it cost. Arguments and errors: as `RunSql.run`."""
    scans: list[tuple[str, TableScanner]] = []
    work = sql.begin(
        text,
        this=this,
        as_of=as_of,
        on_scan=lambda name, scanner: scans.append((name, scanner)),
    )
    try:
        plan = work.profile(text, parameters)
        found = tuple(_explained(name, scanner) for name, scanner in scans)
        not_pushed = tuple(_not_pushed(work.plan(text, parameters)))
    finally:
        work.close()
    return SqlExplanation(plan=plan, scans=found, not_pushed=not_pushed)


def _not_pushed(trees: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the tests of filters that meet the rows of a scan as they come."""
    for tree in trees:
        if tree["name"].strip() == _FILTER and _is_of_scan(tree):
            expression = tree["extra_info"].get("Expression", ())
            yield from [expression] if isinstance(expression, str) else expression
        yield from _not_pushed(tree["children"])


def _is_of_scan(tree: Mapping[str, Any]) -> bool:
    """Return whether nothing but filters and projections lies between a node and one scan."""
    while tree["name"].strip() in (_FILTER, _PROJECTION):
        (tree,) = tree["children"]
    return str(tree["name"]).strip() == _SCAN


def _explained(name: str, scanner: TableScanner) -> ScanExplanation:
    filter_ = "" if scanner.filter is None else str(scanner.filter)
    return ScanExplanation(
        table=name,
        filter=filter_,
        without_range=scanner.without_range,
        hint=_hint(scanner),
        read=scanner.explanation(),
    )


def _hint(scanner: TableScanner) -> str:
    """Return what to write so that less is read, where everything was."""
    if scanner.narrows:
        return ""
    keys = ", ".join(scanner.row_keys)
    if scanner.filter is None:
        return f"no test reached the scan: name ranges of {keys}; LIKE 'ab%' is >= 'ab' and < 'ac'"
    return f"no part of the filter is a range of {keys}, so every leaf was read"
