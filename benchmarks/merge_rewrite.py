"""The floor of a merge by pyarrow: decode the same files and encode their rows, file after file.

`merge_rewrite STORE SHAPE`. Options are those of our writer.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.inputs import files_in
from benchmarks.processes import run_measured
from benchmarks.shapes import SHAPES
from lakebed.sorted_files.row_groups import densest
from lakebed.sorted_files.writer_options import writer_options


def main(store: str, shape: str) -> None:
    schema = SHAPES[shape].schema
    root = Path(store)
    writer = None
    for file in files_in(root):
        with pq.ParquetFile(file, pre_buffer=False) as parquet:
            for group in range(parquet.num_row_groups):
                rows: pa.Table = parquet.read_row_group(group, use_threads=False)
                if writer is None:
                    options = writer_options(schema, rows, densest(rows))
                    writer = pq.ParquetWriter(root / "rewritten.parquet", rows.schema, **options)
                writer.write_table(rows, row_group_size=len(rows))
    assert writer is not None, "there are rows"
    writer.close()


if __name__ == "__main__":
    run_measured(main)
