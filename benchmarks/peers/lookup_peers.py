"""The same lookups by others, over the same files on the same server, all columns.

Each keeps what it can between lookups: an opened dataset with its metadata, a registered table.
DuckDB is not among them: it reads S3 by its extension httpfs, which it downloads when it is first
used, or through fsspec's s3fs; a machine without either cannot have it.
"""

from __future__ import annotations

from collections.abc import Callable

import datafusion
import polars as pl
import pyarrow.dataset as ds
import pyarrow.fs
from datafusion.object_store import AmazonS3

from benchmarks.servers.served_objects import BUCKET
from benchmarks.servers.served_tables import Served

Find = Callable[[str], int]
"""Looks a key up; returns how many rows there were."""


def by_datafusion(table: Served) -> Find:
    """DataFusion, with filters pushed down to pages."""
    options = {
        "datafusion.execution.target_partitions": "2",
        "datafusion.execution.parquet.pushdown_filters": "true",
    }
    context = datafusion.SessionContext(datafusion.SessionConfig(options))
    store = AmazonS3(
        bucket_name=BUCKET,
        region="us-east-1",
        access_key_id="bench",
        secret_access_key="bench",
        endpoint=table.server.url,
        allow_http=True,
    )
    context.register_object_store(f"s3://{BUCKET}/", store, None)
    paths = [f"s3://{BUCKET}/{path}" for path in table.paths]
    folder = paths[0].rpartition("/")[0]
    context.register_parquet("bench", f"{folder}/")

    def find(key: str) -> int:
        found = context.table("bench").filter(datafusion.col("key") == key).collect()
        return sum(batch.num_rows for batch in found)

    return find


def by_polars(table: Served) -> Find:
    """Polars, one lazy scan of all files."""
    options = {
        "aws_endpoint_url": table.server.url,
        "aws_access_key_id": "bench",
        "aws_secret_access_key": "bench",
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
    }
    paths = [f"s3://{BUCKET}/{path}" for path in table.paths]
    scan = pl.scan_parquet(paths, storage_options=options, glob=False)

    def find(key: str) -> int:
        return len(scan.filter(pl.col("key") == key).collect())

    return find


def by_pyarrow(table: Served) -> Find:
    """Pyarrow's dataset, whose fragments keep their metadata."""
    files = pyarrow.fs.S3FileSystem(
        access_key="bench",
        secret_key="bench",
        endpoint_override=table.server.url.removeprefix("http://"),
        scheme="http",
        region="us-east-1",
    )
    paths = [f"{BUCKET}/{path}" for path in table.paths]
    opened = ds.dataset(paths, filesystem=files, format="parquet")
    fragments = list(opened.get_fragments())
    for fragment in fragments:
        fragment.ensure_complete_metadata()
    kept = ds.FileSystemDataset(fragments, opened.schema, fragments[0].format, files)

    def find(key: str) -> int:
        return int(kept.to_table(filter=ds.field("key") == key).num_rows)

    return find


PEERS: dict[str, Callable[[Served], Find]] = {
    "datafusion": by_datafusion,
    "polars": by_polars,
    "pyarrow": by_pyarrow,
}
