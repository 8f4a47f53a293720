"""A lake with one table, and rows for it."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

import lakebed

SCHEMA = lakebed.schema_of(row_keys={"id": "string"}, values={"n": "int64?"})


def rows(ids: Iterable[str]) -> pa.Table:
    keys = list(ids)
    return pa.table({"id": keys, "n": pa.array(range(len(keys)), pa.int64())})


def ids(table: lakebed.Table) -> list[str]:
    found: list[str] = table.query(columns=["id"]).read_all().column("id").to_pylist()
    return found


def stream(before: list[str], after: list[str], act: object) -> pa.RecordBatchReader:
    """Rows, and between them something happens."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows(before).to_batches()
        assert callable(act)
        act()
        yield from rows(after).to_batches()

    return pa.RecordBatchReader.from_batches(rows([]).schema, batches())
