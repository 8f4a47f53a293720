"""The least that a merge by pyarrow can do: decode the same files and encode their rows, file after
file.

`merge_rewrite STORE SHAPE`. Options are those of our writer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.inputs import files_in
from benchmarks.processes import run_measured
from benchmarks.shapes import SHAPES
from lakebed.model.schema import Schema
from lakebed.sorted_files.format.row_groups import densest
from lakebed.sorted_files.writing.writer_options import choose, page_rows, writer_options


def main(store: str, shape: str) -> None:
    schema = SHAPES[shape].schema
    root = Path(store)
    writer = None
    for file in files_in(root):
        with pq.ParquetFile(file, pre_buffer=False) as parquet:
            for group in range(parquet.num_row_groups):
                rows: pa.Table = parquet.read_row_group(group, use_threads=False)
                if writer is None:
                    options = _options(schema, rows)
                    writer = pq.ParquetWriter(root / "rewritten.parquet", rows.schema, **options)
                writer.write_table(rows, row_group_size=len(rows))
    assert writer is not None, "there are rows"
    writer.close()


def _options(schema: Schema, first: pa.Table) -> dict[str, Any]:
    names = first.column_names
    codecs = dict.fromkeys(names, "zstd")
    return writer_options(choose(schema, first), names, page_rows(densest(first)), codecs)


if __name__ == "__main__":
    run_measured(main)
