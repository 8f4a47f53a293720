"""The peer: DataFusion merges the same sorted files into one, in a process of its own.

Files, codec, level, row groups, encodings, dictionaries and statistics are as ours; its plan must
be a merge of sorted files, never a sort. `merge_datafusion STORE`
"""

from __future__ import annotations

import sys
from pathlib import Path

import datafusion
from datafusion import ParquetColumnOptions, ParquetWriterOptions, col

from benchmarks.processes import IMPORTS_ONLY, tell_peak

FILES = 10
KEYS = ("key", "timestamp")
ENCODINGS = {
    "key": "delta_byte_array",
    "timestamp": "delta_binary_packed",
    "value": "delta_length_byte_array",
    "nullable_value": "delta_length_byte_array",
}
SETTINGS = {
    # A file that shares its group with another would be sorted again.
    "datafusion.execution.target_partitions": str(FILES),
    "datafusion.optimizer.enable_round_robin_repartition": "false",
    "datafusion.execution.objectstore_writer_buffer_size": str(32 << 20),
}


def output(store: Path) -> Path:
    """Return the file that is written."""
    return store / "merged-by-datafusion.parquet"


def main(store: Path) -> None:
    (folder,) = {file.parent for file in (store / "objects").rglob("*.parquet")}
    context = datafusion.SessionContext(
        datafusion.SessionConfig(SETTINGS), datafusion.RuntimeEnvBuilder().with_disk_manager_os()
    )
    order = [col(key).sort(ascending=True, nulls_first=False) for key in KEYS]
    merged = context.read_parquet(f"{folder}/", file_sort_order=[order]).sort(*order)
    plan = merged.execution_plan().display_indent()
    assert "SortPreservingMergeExec" in plan, plan
    assert "SortExec" not in plan, plan
    columns = {
        name: ParquetColumnOptions(
            dictionary_enabled=False,
            encoding=encoding,
            statistics_enabled="page" if name in KEYS else "none",
        )
        for name, encoding in ENCODINGS.items()
    }
    merged.write_parquet_with_options(
        str(output(store)),
        ParquetWriterOptions(
            compression="zstd(1)",
            max_row_group_size=100_000,
            data_pagesize_limit=128 * 1024,
            column_specific_options=columns,
        ),
    )


if __name__ == "__main__":
    if IMPORTS_ONLY not in sys.argv:
        main(Path(sys.argv[1]))
    tell_peak()
