"""What SQL cost: the engine's plan with its times, and what each scan of a table read."""

from __future__ import annotations

import msgspec

from lakebed.query.datasets import TableScanner
from lakebed.query.explanation import QueryExplanation
from lakebed.sql.asked_versions import AsOfTables
from lakebed.sql.run_sql import RunSql
from lakebed.sql.sql_work import Parameters
from lakebed.statestore.open_table import OpenTable


class ScanExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What one scan read.

    table: as the statement calls it.
    filter: what the engine asked of its rows, as Arrow writes it; "": of all.
    hint: what would have spared reading; "": nothing that is known.
    read: by phase, and of how much.
    """

    table: str
    filter: str
    hint: str
    read: QueryExplanation


class SqlExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that was run, whose rows were thrown away.

    plan: the engine's, with its times.
    scans: of tables, in the order in which they were begun.
    """

    plan: str
    scans: tuple[ScanExplanation, ...]

    def __str__(self) -> str:
        """Lines for people."""
        lines = [self.plan.rstrip()]
        for scan in self.scans:
            lines += ["", f"scan of {scan.table}", f"filter      {scan.filter or 'none'}"]
            lines += [str(scan.read)]
            lines += [f"hint        {scan.hint}"] if scan.hint else []
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
    finally:
        work.close()
    return SqlExplanation(plan=plan, scans=found)


def _explained(name: str, scanner: TableScanner) -> ScanExplanation:
    filter_ = "" if scanner.filter is None else str(scanner.filter)
    return ScanExplanation(
        table=name, filter=filter_, hint=_hint(scanner), read=scanner.explanation()
    )


def _hint(scanner: TableScanner) -> str:
    """Return what to write so that less is read, where everything was."""
    if scanner.narrows:
        return ""
    keys = ", ".join(scanner.row_keys)
    if scanner.filter is None:
        return f"no test reached the scan: name ranges of {keys}; LIKE 'ab%' is >= 'ab' and < 'ac'"
    return f"no part of the filter is a range of {keys}, so every leaf was read"
