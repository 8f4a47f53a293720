"""Shows what a lake knows of its tables, as tables of the schema `lakebed`, made when they are
named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from lakebed.inspection.log_listing import LogListing
from lakebed.inspection.status import TableStatus
from lakebed.model.paths import file_path
from lakebed.model.ranges import EVERYTHING
from lakebed.ports.job_tracker import JobReport
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.placing import reached_leaves

_TIME = pa.timestamp("us", "UTC")
_LEFT_OUT = {"id", "name", "number"}
"""Fields of a status that name it, and are no figures."""

Line = Mapping[str, Any]


class SystemSources(msgspec.Struct, frozen=True):
    """The sources that system tables take their figures from.

    tables: opens all that can be read.
    statuses: of all that can be read.
    jobs: the newest report of each job of a table.
    log: the newest entries of a table's log.
    """

    tables: Callable[[], Sequence[OpenTable]]
    statuses: Callable[[], Sequence[TableStatus]]
    jobs: Callable[[OpenTable], Sequence[JobReport]]
    log: Callable[[OpenTable], LogListing]


def system_tables(sources: SystemSources) -> Mapping[str, Callable[[], pa.Table]]:
    """Return what makes each table of the schema `lakebed`, by its name."""
    makers: Mapping[str, Callable[[SystemSources], Iterator[Line]]] = {
        "files": _files,
        "jobs": _jobs,
        "leaves": _leaves,
        "log": _log,
        "metrics": _metrics,
    }
    return {name: partial(_made, name, make, sources) for name, make in makers.items()}


def _made(
    name: str, make: Callable[[SystemSources], Iterator[Line]], sources: SystemSources
) -> pa.Table:
    return pa.Table.from_pylist(list(make(sources)), schema=_COLUMNS[name])


_COLUMNS = {
    "files": pa.schema(
        {
            "table": pa.string(),
            "leaf": pa.int64(),
            "path": pa.string(),
            "rows": pa.int64(),
            "rows_exact": pa.bool_(),
            "bytes": pa.int64(),
        }
    ),
    "jobs": pa.schema(
        {
            "table": pa.string(),
            "job": pa.string(),
            "kind": pa.string(),
            "event": pa.string(),
            "at": _TIME,
            "reason": pa.string(),
            "rows": pa.int64(),
            "seconds": pa.float64(),
            "number": pa.int64(),
        }
    ),
    "leaves": pa.schema(
        {
            "table": pa.string(),
            "leaf": pa.int64(),
            "field": pa.string(),
            "min": pa.string(),
            "max": pa.string(),
            "rows": pa.int64(),
            "rows_exact": pa.bool_(),
            "files": pa.int64(),
            "bytes": pa.int64(),
        }
    ),
    "log": pa.schema(
        {
            "table": pa.string(),
            "number": pa.int64(),
            "at": _TIME,
            "bytes": pa.int64(),
            "changes": pa.list_(pa.string()),
        }
    ),
    "metrics": pa.schema({"table": pa.string(), "metric": pa.string(), "value": pa.float64()}),
}


def _files(sources: SystemSources) -> Iterator[Line]:
    """Yield each part of a file that lies in a leaf. bytes: of the whole file."""
    for table in sources.tables():
        with table.head.reading() as state:
            for leaf, _ in reached_leaves(state, state.head().root, (EVERYTHING,)):
                for reference, _job in state.references(leaf):
                    yield {
                        "table": table.name,
                        "leaf": leaf,
                        "path": file_path(table.id, reference.file.name),
                        "rows": reference.rows,
                        "rows_exact": reference.exact,
                        "bytes": reference.file.size,
                    }


def _jobs(sources: SystemSources) -> Iterator[Line]:
    for table in sources.tables():
        for report in sources.jobs(table):
            line = {name: getattr(report, name) for name in _COLUMNS["jobs"].names[1:]}
            yield {**line, "table": table.name}


def _leaves(sources: SystemSources) -> Iterator[Line]:
    """Yield each leaf. min, max: of the field by which its parent is split; null: unbounded."""
    for status in sources.statuses():
        for node in status.nodes:
            if node.left is None:
                line = {name: getattr(node, name) for name in _COLUMNS["leaves"].names[2:]}
                yield {**line, "table": status.name, "leaf": node.id}


def _log(sources: SystemSources) -> Iterator[Line]:
    for table in sources.tables():
        for entry in sources.log(table).entries:
            changes = [text for one in entry.transactions for text in one.does]
            yield {
                "table": table.name,
                "number": entry.number,
                "at": entry.at,
                "bytes": entry.bytes,
                "changes": changes,
            }


def _metrics(sources: SystemSources) -> Iterator[Line]:
    """Yield the figures of `lakebed status`; what is listed there is counted."""
    for status in sources.statuses():
        for name in status.__struct_fields__:
            value = getattr(status, name)
            if isinstance(value, (tuple, Mapping)):
                value = len(value)
            if name not in _LEFT_OUT and isinstance(value, (int, float)):
                yield {"table": status.name, "metric": name, "value": float(value)}
