"""Lists the files that are one version of a table, for programs that read Parquet themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from lakebed.model.files import FileReference
from lakebed.model.keys import KeyValue, prefix_values
from lakebed.model.names import is_shared
from lakebed.model.paths import file_path
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Schema
from lakebed.model.versions import AsOf
from lakebed.query.past_versions import PastVersions
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.placing import reached_leaves


class TableFile(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a file that belong to a table: those whose row keys lie in a range, one leaf's.

    path: where other programs find the file: a path of this machine, or `s3://BUCKET/KEY`.
    min: values of the first row keys, times as numbers; no key lies below; None: there is no end.
    max: the same; all keys lie below.
    rows: in the range; about, unless `exact`.
    bytes: of the file; of one that leaves share, as large a part as that of its rows.
    whole: whether the range holds all rows of the file: then its keys need no look.
    """

    path: str
    min: tuple[KeyValue, ...] | None
    max: tuple[KeyValue, ...] | None
    rows: int
    exact: bool
    bytes: int
    whole: bool


def table_files(
    table: OpenTable,
    url_of: Callable[[str], str],
    *,
    past: PastVersions,
    as_of: AsOf | None = None,
) -> list[TableFile]:
    """Return the files of a version, leaf by leaf in key order.

    url_of: tells of an object's path where it lies.
    past: gives older versions.
    as_of: the version; None: the newest.

    Raises:
        TableMissingError: the table was dropped. CacheDamagedError: ask again.
        As `PastVersions.reading`.
    """
    with table.head.reading() if as_of is None else past.reading(table, as_of) as state:
        state.require_table()
        number = state.head().number
        schema = state.schema()
        found = [
            (reference, key_range)
            for leaf, key_range in reached_leaves(state, state.head().root, (EVERYTHING,))
            for reference, _ in state.references(leaf)
        ]
    if as_of is not None:
        past.check_files(table, number, (reference.file.name for reference, _ in found))
    leaves = Counter(reference.file.name for reference, _ in found)
    rows: Counter[bytes] = Counter()
    for reference, _ in found:
        rows[reference.file.name] += reference.rows
    return [
        _table_file(
            schema,
            reference,
            key_range,
            path=url_of(file_path(table.id, reference.file.name)),
            of=(leaves[reference.file.name], rows[reference.file.name]),
        )
        for reference, key_range in found
    ]


def _table_file(
    schema: Schema, reference: FileReference, key_range: KeyRange, *, path: str, of: tuple[int, int]
) -> TableFile:
    """of: how many leaves have rows of the file, and how many rows these are."""
    leaves, rows = of
    whole = reference.exact and leaves == 1 and not is_shared(reference.file.name)
    share = reference.file.size * reference.rows // rows if rows else reference.file.size // leaves
    return TableFile(
        path=path,
        min=_values(schema, key_range.min or None),
        max=_values(schema, key_range.max),
        rows=reference.rows,
        exact=reference.exact,
        bytes=reference.file.size if leaves == 1 else share,
        whole=whole,
    )


def _values(schema: Schema, end: bytes | None) -> tuple[KeyValue, ...] | None:
    return None if end is None else prefix_values(schema.row_keys, end)
