"""Writes down all tables of a lake, as files that declare them."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.errors import LakebedError
from lakebed.tables.catalog import TableCatalog
from lakebed.tables.table_files import table_texts
from lakebed.tasks.failed_work import FailedWork, by_gravity, raise_gravest


def download_tables(
    catalog: TableCatalog, failed: Callable[[FailedWork], None] | None = None
) -> dict[str, str]:
    """Return files that declare all tables as they are, by name.

    failed: called with each table that cannot be read or is in quarantine, and why.

    Raises:
        LakebedError: the gravest error that a table met; only where `failed` is not given.
    """
    texts: dict[str, str] = {}
    failures: list[FailedWork] = []
    for entry in catalog.list():
        try:
            with catalog.opened(entry).head.reading() as state:
                texts |= table_texts(entry, state)
        except LakebedError as error:
            failures.append(FailedWork(table=entry.name, work="download", error=error))
    if failed is None:
        raise_gravest(failures)
    else:
        for one in by_gravity(failures):
            failed(one)
    return texts
