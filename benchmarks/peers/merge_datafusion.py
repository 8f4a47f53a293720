"""The peer: DataFusion merges the same sorted files into one: `merge_datafusion STORE SHAPE`.

Files, level of zstd, row groups, encodings, dictionaries and statistics are as ours, and what it
wrote is synced; its plan must be a merge of sorted files, never a sort; where it folds rows of
equal keys, in their order.
SHAPE: what `Shape.for_peers` says.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datafusion
from datafusion import ParquetColumnOptions, ParquetWriterOptions, col, functions, lit
from datafusion.expr import Expr, SortExpr

from benchmarks.processes import run_measured

FOLDS: dict[str, Callable[..., Expr]] = {"max": functions.max, "sum": functions.sum}
SETTINGS = {
    "datafusion.optimizer.repartition_aggregations": "false",
    "datafusion.optimizer.enable_round_robin_repartition": "false",
    "datafusion.execution.objectstore_writer_buffer_size": str(32 << 20),
}


def main(store: str, shape: str) -> None:
    plan = json.loads(shape)
    inputs = list((Path(store) / "objects").rglob("*.parquet"))
    (folder,) = {file.parent for file in inputs}
    # A file that shares its group with another would be sorted again.
    groups = {"datafusion.execution.target_partitions": str(len(inputs))}
    context = datafusion.SessionContext(
        datafusion.SessionConfig(SETTINGS | groups),
        datafusion.RuntimeEnvBuilder().with_disk_manager_os(),
    )
    order = [col(key).sort(ascending=True, nulls_first=False) for key in plan["keys"]]
    rows = context.read_parquet(f"{folder}/", file_sort_order=[order])
    merged = rows.sort(*order) if plan["folds"] is None else _folded(rows, plan, order)
    steps = merged.execution_plan().display_indent()
    assert "SortPreservingMergeExec" in steps, steps
    assert "SortExec" not in steps, steps
    output = Path(store) / "by-datafusion.parquet"
    merged.write_parquet_with_options(str(output), _options(plan))
    with output.open("rb") as file:
        os.fsync(file.fileno())


def _folded(
    rows: datafusion.DataFrame, plan: dict[str, Any], order: list[SortExpr]
) -> datafusion.DataFrame:
    """Return rows without the old ones, those of equal keys made one while they are merged."""
    column, least = plan["since"]
    merged = rows.filter(col(column) >= lit(least)).sort(*order)
    folds = [FOLDS[fold](col(name)).alias(name) for name, fold in plan["folds"].items()]
    folded = merged.aggregate([col(key) for key in plan["keys"]], folds).sort(*order)
    steps = folded.execution_plan().display_indent()
    assert "ordering_mode=Sorted" in steps, steps
    return folded


def _options(plan: dict[str, Any]) -> ParquetWriterOptions:
    columns = {
        name: ParquetColumnOptions(
            dictionary_enabled=name in plan["dictionaries"],
            encoding=plan["encodings"].get(name),
            statistics_enabled="page" if name in plan["keys"] else "none",
        )
        for name in plan["columns"]
    }
    return ParquetWriterOptions(
        compression="zstd(1)",
        max_row_group_size=100_000,
        data_pagesize_limit=128 * 1024,
        column_specific_options=columns,
    )


if __name__ == "__main__":
    run_measured(main)
